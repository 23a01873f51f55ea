// SPDX-License-Identifier: Apache-2.0
// One GET, by a program that has its own resolver and looks at no proxy variable.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

func main() {
	rest := strings.TrimPrefix(os.Args[1], "http://")
	host, path, _ := strings.Cut(rest, "/")
	connection, err := net.Dial("tcp", host)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Fprintf(connection, "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
	answer, _ := io.ReadAll(connection)
	fmt.Println(string(answer))
}
