// SPDX-License-Identifier: Apache-2.0

// Package agenticci gives a program lasting sandboxes: a client of `agentic-ci serve --stdio`, with the standard library
// alone. The server is a child of this program and ends with it, however it ends, and so does each sandbox created here.
package agenticci

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"unicode/utf8"
)

const (
	lineBytesMax = 16 << 20
	pieceBytes   = 512 << 10 // Of input, in one message.
	// Output of a command that may wait here to be read. None for one with input, behind which an ack could wait.
	windowBytes = 1 << 20
)

// ErrEnded is that the server has ended, and its sandboxes with it.
var ErrEnded = errors.New("the server has ended")

// Error is a request that failed. ExitCode is what the command line would exit with (0 for an error of the protocol), Kind
// names it in a word ("not_found", "usage", "temporary", ...), and Hint is empty or something to type.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		ExitCode int    `json:"exit_code"`
		Kind     string `json:"kind"`
		Hint     string `json:"hint"`
	} `json:"data"`
}

func (e *Error) Error() string { return e.Message }

// Params are the members of a request, by their names in the protocol.
type Params map[string]any

// Change is a file of the checkout that changed.
type Change struct {
	Kind    string `json:"kind"`
	Path    string `json:"path"`
	OldPath string `json:"old_path"`
}

// Result is how a command ended. Reason is exit, signal, timeout, oom, output or cancelled.
type Result struct {
	Status  int               `json:"status"`
	Reason  string            `json:"reason"`
	Changes []Change          `json:"changes"`
	Refused []json.RawMessage `json:"refused"`
	Stdout  []byte            `json:"-"`
	Stderr  []byte            `json:"-"`
}

// Bytes of a message are text, or Base64 where they are not UTF-8.
type content struct {
	Stream string          `json:"stream"`
	Text   string          `json:"text"`
	Base64 []byte          `json:"base64"`
	Event  json.RawMessage `json:"event"`
}

func (c content) bytes() []byte {
	if c.Base64 != nil {
		return c.Base64
	}
	return []byte(c.Text)
}

type message struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

// Server is a running `agentic-ci serve --stdio`.
type Server struct {
	process *exec.Cmd
	input   io.WriteCloser
	sending sync.Mutex
	lock    sync.Mutex // Of what follows.
	calls   map[int]*call
	last    int
	ended   bool
	done    chan struct{}
}

// A request that goes on: its notifications, then its answer.
type call struct {
	number int
	lock   sync.Mutex
	wake   chan struct{} // Has room for one.
	queue  []message
}

func (c *call) put(m message) {
	c.lock.Lock()
	c.queue = append(c.queue, m)
	c.lock.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *call) take(ctx context.Context) (message, error) {
	for {
		c.lock.Lock()
		if len(c.queue) > 0 {
			m := c.queue[0]
			c.queue = c.queue[1:]
			c.lock.Unlock()
			return m, nil
		}
		c.lock.Unlock()
		select {
		case <-c.wake:
		case <-ctx.Done():
			return message{}, ctx.Err()
		}
	}
}

// Start starts the server: a program's path or its name on the PATH.
func Start(ctx context.Context, program string) (*Server, error) {
	s := &Server{process: exec.Command(program, "serve", "--stdio"), calls: map[int]*call{}, done: make(chan struct{})}
	s.process.Stderr = os.Stderr
	var err error
	if s.input, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err = s.process.Start(); err != nil {
		return nil, err
	}
	go s.read(output)
	client := Params{"name": "agentic-ci-client"}
	if err = s.Call(ctx, "initialize", Params{"protocol": 1, "client": client}, nil); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the server and the sandboxes that were created here.
func (s *Server) Close() error {
	s.input.Close()
	<-s.done
	return s.process.Wait()
}

// Call carries out any method of the protocol; `result` is filled from the answer if it is not nil.
func (s *Server) Call(ctx context.Context, method string, params Params, result any) error {
	_, err := s.collect(ctx, method, params, result)
	return err
}

// Create makes a sandbox, with the options of `agentic-ci sandbox create` by their names.
func (s *Server) Create(ctx context.Context, options Params) (*Sandbox, error) {
	var made struct{ Name string }
	if err := s.Call(ctx, "create", options, &made); err != nil {
		return nil, err
	}
	return &Sandbox{s, made.Name}, nil
}

func (s *Server) start(method string, params Params) (*call, error) {
	s.lock.Lock()
	s.last++
	c := &call{number: s.last, wake: make(chan struct{}, 1)}
	s.calls[c.number] = c
	s.lock.Unlock()
	if err := s.send(map[string]any{"jsonrpc": "2.0", "id": c.number, "method": method, "params": params}); err != nil {
		s.lock.Lock()
		delete(s.calls, c.number)
		s.lock.Unlock()
		return nil, err
	}
	return c, nil
}

func (s *Server) notify(method string, params Params) error {
	return s.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

func (s *Server) send(m any) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(line) >= lineBytesMax {
		return errors.New("the request is longer than 16 MiB")
	}
	s.lock.Lock()
	ended := s.ended
	s.lock.Unlock()
	s.sending.Lock()
	defer s.sending.Unlock()
	if ended {
		return ErrEnded
	}
	if _, err = s.input.Write(append(line, '\n')); err != nil {
		return ErrEnded
	}
	return nil
}

func (s *Server) read(output io.Reader) {
	defer close(s.done)
	lines := bufio.NewScanner(output)
	lines.Buffer(make([]byte, 64<<10), lineBytesMax+1)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			break // The server ended within it.
		}
		var about struct{ Request int }
		if m.Method == "" && m.ID != nil {
			about.Request = *m.ID
		} else {
			json.Unmarshal(m.Params, &about)
		}
		s.lock.Lock()
		c := s.calls[about.Request]
		if m.Method == "" {
			delete(s.calls, about.Request)
		}
		s.lock.Unlock()
		if c != nil {
			c.put(m)
		}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.ended = true
	for _, c := range s.calls {
		c.put(message{Error: &Error{Message: ErrEnded.Error()}})
	}
}

// The next notification's content, or the answer: `more` is false then. If the context ends, the request is cancelled.
func (s *Server) next(ctx context.Context, c *call, result any) (note content, more bool, err error) {
	m, err := c.take(ctx)
	if err != nil {
		s.notify("cancel", Params{"request": c.number})
		return content{}, false, err
	}
	if m.Method != "" {
		return note, true, json.Unmarshal(m.Params, &note)
	}
	if m.Error != nil {
		if m.Error.Code == 0 {
			return note, false, ErrEnded
		}
		return note, false, m.Error
	}
	if result != nil {
		err = json.Unmarshal(m.Result, result)
	}
	return note, false, err
}

func (s *Server) collect(ctx context.Context, method string, params Params, result any) (data []byte, err error) {
	c, err := s.start(method, params)
	if err != nil {
		return nil, err
	}
	for {
		note, more, err := s.next(ctx, c, result)
		if err != nil || !more {
			return data, err
		}
		data = append(data, note.bytes()...)
	}
}

// Sandbox is a sandbox, by its name.
type Sandbox struct {
	server *Server
	Name   string
}

// Command is a command that runs.
type Command struct {
	server   *Server
	call     *call
	windowed bool
}

// Begin starts a script of the sandbox's shell, or with "command" in `options` a program and its arguments. Further options
// are those of the protocol: "directory", "env", "timeout", "wait". With `input`, standard input comes by Write.
func (b *Sandbox) Begin(script string, input bool, options Params) (*Command, error) {
	params := Params{"sandbox": b.Name}
	if script != "" {
		params["script"] = script
	}
	if input {
		params["stdin"] = Params{"text": "", "end": false}
	} else {
		params["window"] = windowBytes
	}
	for key, value := range options {
		params[key] = value
	}
	c, err := b.server.start("exec", params)
	return &Command{b.server, c, !input}, err
}

// Write gives the command more standard input; it waits while the command does not read.
func (c *Command) Write(data []byte) (int, error) {
	for at := 0; at < len(data); at += pieceBytes {
		piece := data[at:min(at+pieceBytes, len(data))]
		if err := c.input(piece, false); err != nil {
			return at, err
		}
	}
	return len(data), nil
}

// CloseInput ends the command's standard input.
func (c *Command) CloseInput() error { return c.input(nil, true) }

func (c *Command) input(data []byte, end bool) error {
	text := base64.StdEncoding.EncodeToString(data)
	return c.server.notify("input", Params{"request": c.call.number, "base64": text, "end": end})
}

// Cancel ends the command, whose result then has the reason "cancelled".
func (c *Command) Cancel() error { return c.server.notify("cancel", Params{"request": c.call.number}) }

// Wait returns how the command ended. Output goes to `onOutput` ("stdout" or "stderr") as it comes, or without it into the
// result. If the context ends, the command is cancelled.
func (c *Command) Wait(ctx context.Context, onOutput func(stream string, data []byte)) (*Result, error) {
	result := &Result{}
	for {
		note, more, err := c.server.next(ctx, c.call, result)
		if err != nil {
			return nil, err
		}
		if !more {
			return result, nil
		}
		data := note.bytes()
		switch {
		case onOutput != nil:
			onOutput(note.Stream, data)
		case note.Stream == "stderr":
			result.Stderr = append(result.Stderr, data...)
		default:
			result.Stdout = append(result.Stdout, data...)
		}
		if !c.windowed {
			continue
		}
		if err = c.server.notify("ack", Params{"request": c.call.number, "bytes": len(data)}); err != nil {
			return nil, err
		}
	}
}

// Exec runs a script of the sandbox's shell to its end.
func (b *Sandbox) Exec(ctx context.Context, script string, options Params) (*Result, error) {
	c, err := b.Begin(script, false, options)
	if err != nil {
		return nil, err
	}
	return c.Wait(ctx, nil)
}

func (b *Sandbox) do(ctx context.Context, method string, params Params, result any) ([]byte, error) {
	all := Params{"sandbox": b.Name}
	for key, value := range params {
		all[key] = value
	}
	return b.server.collect(ctx, method, all, result)
}

// Put writes a file of the sandbox, of at most 8 MiB; its directories are made.
func (b *Sandbox) Put(ctx context.Context, target string, data []byte, executable bool) error {
	params := Params{"target": target, "executable": executable}
	if utf8.Valid(data) {
		params["text"] = string(data)
	} else {
		params["base64"] = base64.StdEncoding.EncodeToString(data)
	}
	_, err := b.do(ctx, "put", params, nil)
	return err
}

// Get returns the content of a file of the sandbox.
func (b *Sandbox) Get(ctx context.Context, source string) ([]byte, error) {
	return b.do(ctx, "get", Params{"source": source}, nil)
}

// Upload copies a file or directory of the host, by its absolute path, as `agentic-ci sandbox put` does.
func (b *Sandbox) Upload(ctx context.Context, source, target string) error {
	_, err := b.do(ctx, "put", Params{"source": source, "target": target}, nil)
	return err
}

// Download copies a file or directory to an absolute path of the host, as `agentic-ci sandbox get` does.
func (b *Sandbox) Download(ctx context.Context, source, target string) error {
	_, err := b.do(ctx, "get", Params{"source": source, "target": target}, nil)
	return err
}

// Diff returns what has changed in the checkout: a list of files, and a patch.
func (b *Sandbox) Diff(ctx context.Context) (changes []Change, patch []byte, err error) {
	var result struct {
		Changes []Change
		Patch   string
	}
	data, err := b.do(ctx, "diff", nil, &result)
	return result.Changes, append(data, result.Patch...), err
}

// Apply applies the changes to the checkout, if the gates let them pass.
func (b *Sandbox) Apply(ctx context.Context) error {
	_, err := b.do(ctx, "apply", nil, nil)
	return err
}

// Snapshot keeps everything written in the sandbox, under a tag.
func (b *Sandbox) Snapshot(ctx context.Context, tag string) error {
	_, err := b.do(ctx, "snapshot", Params{"tag": tag}, nil)
	return err
}

// Restore puts the sandbox where a snapshot was taken: a tag, a digest, or oci:DIRECTORY.
func (b *Sandbox) Restore(ctx context.Context, snapshot string) error {
	_, err := b.do(ctx, "restore", Params{"snapshot": snapshot}, nil)
	return err
}

// Reset puts the sandbox back to its beginning.
func (b *Sandbox) Reset(ctx context.Context) error {
	_, err := b.do(ctx, "reset", nil, nil)
	return err
}

// Delete ends the sandbox.
func (b *Sandbox) Delete(ctx context.Context) error {
	_, err := b.do(ctx, "delete", nil, nil)
	return err
}

// Events calls `on` for each request as it is judged, with its record, until the context or the sandbox ends.
func (b *Sandbox) Events(ctx context.Context, on func(record json.RawMessage)) error {
	c, err := b.server.start("events", Params{"sandbox": b.Name})
	if err != nil {
		return err
	}
	for {
		note, more, err := b.server.next(ctx, c, nil)
		if err != nil || !more {
			return err
		}
		on(note.Event)
	}
}
