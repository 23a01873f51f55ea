// SPDX-License-Identifier: Apache-2.0
// Prints for each of some system calls how long one takes, in microseconds: the least of five
// rounds, since whatever else the machine does only adds. Works in the current directory.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static void check(int worked, const char* what) {
  if (worked) return;
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static void start_a_program(void) {
  char* line[] = {"/bin/true", NULL};
  pid_t pid;
  int status = 0;
  check(posix_spawn(&pid, line[0], NULL, NULL, line, environ) == 0, "posix_spawn");
  check(waitpid(pid, &status, 0) == pid && status == 0, "waitpid");
}

static void fork_a_process(void) {
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  check(waitpid(pid, NULL, 0) == pid, "waitpid");
}

static int listener;
static struct sockaddr_in address;

static void connect_over_loopback(void) {
  int client = socket(AF_INET, SOCK_STREAM, 0);
  check(client >= 0, "socket");
  check(connect(client, (struct sockaddr*)&address, sizeof address) == 0, "connect");
  int server = accept(listener, NULL, NULL);
  check(server >= 0, "accept");
  struct linger at_once = {1, 0};  // Leaves no port waiting.
  setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(client);
  close(server);
}

static int unix_listener;
static struct sockaddr_un path;

static void connect_to_a_file(void) {
  int client = socket(AF_UNIX, SOCK_STREAM, 0);
  check(client >= 0, "socket");
  check(connect(client, (struct sockaddr*)&path, sizeof path) == 0, "connect");
  int server = accept(unix_listener, NULL, NULL);
  check(server >= 0, "accept");
  close(client);
  close(server);
}

static void change_a_mode(void) { check(chmod("bench-file", 0600) == 0, "chmod"); }

static void change_times(void) {
  check(utimensat(AT_FDCWD, "bench-file", NULL, 0) == 0, "utimensat");
}

static void make_and_remove_a_file(void) {
  int file = open("bench-other", O_CREAT | O_WRONLY, 0600);
  check(file >= 0, "open");
  close(file);
  check(unlink("bench-other") == 0, "unlink");
}

static void look_at_a_file(void) {
  struct stat facts;
  check(stat("bench-file", &facts) == 0, "stat");
}

static void measure(const char* name, void (*call)(void), int times) {
  double least = 1e12;
  for (int round = 0; round < 5; ++round) {
    double began = now();
    for (int i = 0; i < times; ++i) call();
    double spent = (now() - began) / times;
    if (spent < least) least = spent;
  }
  printf("%s\t%.2f\n", name, least);
  fflush(stdout);
}

int main(void) {
  int file = open("bench-file", O_CREAT | O_WRONLY, 0600);
  check(file >= 0, "open");
  close(file);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  listener = socket(AF_INET, SOCK_STREAM, 0);
  check(bind(listener, (struct sockaddr*)&address, size) == 0 && listen(listener, 64) == 0,
        "listen");
  getsockname(listener, (struct sockaddr*)&address, &size);
  path.sun_family = AF_UNIX;
  strcpy(path.sun_path, "bench-socket");
  unlink(path.sun_path);
  unix_listener = socket(AF_UNIX, SOCK_STREAM, 0);
  check(bind(unix_listener, (struct sockaddr*)&path, sizeof path) == 0 &&
            listen(unix_listener, 64) == 0,
        "listen");
  measure("fork", fork_a_process, 200);
  measure("start a program", start_a_program, 100);
  measure("connect over loopback", connect_over_loopback, 100);
  measure("connect to a socket's file", connect_to_a_file, 100);
  measure("stat", look_at_a_file, 2000);
  measure("make and remove a file", make_and_remove_a_file, 300);
  measure("chmod", change_a_mode, 300);
  measure("utimensat", change_times, 300);
  unlink("bench-file");
  unlink(path.sun_path);
  return 0;
}
