// SPDX-License-Identifier: Apache-2.0

// A user's program, in Go. usage: main AGENTIC-CI [COMMAND]   In a checkout; with COMMAND it starts that and waits to be killed.
package main

import (
	"agenticci"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

func check(ok bool, what ...any) {
	if !ok {
		panic(fmt.Sprint(what...))
	}
}

func need[T any](value T, err error) T {
	check(err == nil, err)
	return value
}

func main() {
	ctx := context.Background()
	server := need(agenticci.Start(ctx, os.Args[1]))
	box := need(server.Create(ctx, agenticci.Params{"name": "one"}))
	if len(os.Args) > 2 {
		need(box.Begin(os.Args[2], false, nil))
		fmt.Println("holds")
		time.Sleep(1000 * time.Second)
	}
	// Output comes as it is written, and input goes to it.
	echo := need(box.Begin(`while read -r x; do echo "got $x"; done; echo end >&2; exit 3`, true, nil))
	need(echo.Write([]byte("first\n")))
	var seen []string
	result := need(echo.Wait(ctx, func(stream string, data []byte) {
		seen = append(seen, stream+" "+string(data))
		if len(seen) == 1 {
			need(echo.Write([]byte("second\n")))
			check(echo.CloseInput() == nil)
		}
	}))
	check(strings.Join(seen, "") == "stdout got first\nstdout got second\nstderr end\n", seen)
	check(result.Status == 3 && result.Reason == "exit", result)
	// More than any window.
	much := bytes.Repeat([]byte{255}, 5000000)
	cat := need(box.Begin("", true, agenticci.Params{"command": []string{"cat"}}))
	go func() {
		need(cat.Write(much))
		check(cat.CloseInput() == nil)
	}()
	check(bytes.Equal(need(cat.Wait(ctx, nil)).Stdout, much))
	result = need(box.Exec(ctx, `echo "$x $PWD"`, agenticci.Params{"env": map[string]string{"x": "it's"}, "directory": "/tmp"}))
	check(string(result.Stdout) == "it's /tmp\n", string(result.Stdout))
	// Ends by others.
	check(need(box.Exec(ctx, "sleep 1000", agenticci.Params{"timeout": "1s"})).Reason == "timeout")
	sleeper := need(box.Begin("echo runs; sleep 1000", false, nil))
	result = need(sleeper.Wait(ctx, func(string, []byte) { check(sleeper.Cancel() == nil) }))
	check(result.Reason == "cancelled", result)
	short, cancel := context.WithTimeout(ctx, time.Second)
	_, err := box.Exec(short, "sleep 1000", nil)
	cancel()
	check(errors.Is(err, context.DeadlineExceeded), err)
	// Files.
	data := []byte{255, 0, 10}
	check(box.Put(ctx, "/tmp/new/data", data, true) == nil)
	check(bytes.Equal(need(box.Get(ctx, "/tmp/new/data")), data))
	result = need(box.Exec(ctx, "test -x /tmp/new/data; echo changed > a.txt", nil))
	check(len(result.Changes) == 1 && result.Changes[0] == agenticci.Change{Kind: "modified", Path: "a.txt"}, result)
	_, patch, err := box.Diff(ctx)
	check(err == nil && strings.Contains(string(patch), "+changed"), string(patch))
	check(box.Snapshot(ctx, "scenario") == nil)
	check(box.Reset(ctx) == nil)
	changes, _, err := box.Diff(ctx)
	check(err == nil && len(changes) == 0, changes)
	check(box.Restore(ctx, "scenario") == nil)
	check(string(need(box.Get(ctx, "a.txt"))) == "changed\n")
	// Requests.
	watching, enough := context.WithCancel(ctx)
	records := make(chan string, 100)
	watched := make(chan error)
	go func() {
		watched <- box.Events(watching, func(record json.RawMessage) { records <- string(record) })
	}()
	for len(records) == 0 { // The first may be earlier than the server sends them.
		result = need(box.Exec(ctx, "curl -s -m 20 http://refused.invalid/", nil))
		check(len(result.Refused) == 1 && strings.Contains(string(result.Refused[0]), "refused.invalid"), result)
	}
	check(strings.Contains(<-records, "refused.invalid"))
	enough()
	check(errors.Is(<-watched, context.Canceled))
	// Errors.
	var fault *agenticci.Error
	err = server.Call(ctx, "exec", agenticci.Params{"sandbox": "none", "script": "true"}, nil)
	check(errors.As(err, &fault), err)
	check(fault.Data.ExitCode == 66 && fault.Data.Kind == "not_found" && fault.Data.Hint == "agentic-ci sandbox list", fault)
	check(box.Apply(ctx) == nil)
	check(box.Delete(ctx) == nil)
	check(server.Close() == nil)
	check(errors.Is(server.Call(ctx, "list", nil, nil), agenticci.ErrEnded))
	fmt.Println("done")
}
