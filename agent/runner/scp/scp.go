// Package scp is the remote side of the old protocol of scp, which clients use with -O. The runner
// provides it in images without an scp program. Newer clients use SFTP instead.
package scp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Run serves one copy with the arguments of an scp program, and returns its exit code.
func Run(args []string, in io.Reader, out io.Writer) int {
	o, paths, err := parse(args)
	p := &peer{in: bufio.NewReaderSize(in, 64<<10), out: bufio.NewWriterSize(out, 64<<10)}
	if err != nil {
		p.warn(err)
		return 1
	}
	if o.sink {
		err = (&sink{peer: p, options: o}).run(paths)
	} else {
		err = (&source{peer: p, options: o}).run(paths)
	}
	if err == nil {
		err = p.out.Flush()
	}
	if err != nil || p.failed {
		return 1
	}
	return 0
}

// options are the flags that a client passes to the remote side.
type options struct {
	sink, recursive, preserve, directory bool
}

func parse(args []string) (o options, paths []string, err error) {
	from := false
	for i, a := range args {
		if a == "--" {
			paths = args[i+1:]
			break
		}
		flags, ok := strings.CutPrefix(a, "-")
		if !ok || flags == "" {
			paths = args[i:]
			break
		}
		for _, f := range flags {
			switch f {
			case 't':
				o.sink = true
			case 'f':
				from = true
			case 'r':
				o.recursive = true
			case 'p':
				o.preserve = true
			case 'd':
				o.directory = true
			case 'v', 'q':
			default:
				return o, nil, fmt.Errorf("scp: the remote side does not know the option -%c", f)
			}
		}
	}
	switch {
	case o.sink == from:
		return o, nil, errors.New("scp: the remote side takes one of -t and -f")
	case len(paths) == 0 || o.sink && len(paths) > 1:
		return o, nil, errors.New("scp: ambiguous target")
	}
	return o, paths, nil
}

// peer is the connection to the client's scp.
type peer struct {
	in     *bufio.Reader
	out    *bufio.Writer
	failed bool // a file could not be copied
}

// maxLine limits a control message. A name has at most 255 bytes on Linux, and an error message
// contains a path of at most 4096.
const maxLine = 8 << 10

// line reads a control message without its line end.
func (p *peer) line() (string, error) {
	var text []byte
	for len(text) < maxLine {
		b, err := p.in.ReadByte()
		if err != nil {
			return "", err
		}
		if b == '\n' {
			return string(text), nil
		}
		text = append(text, b)
	}
	return "", errors.New("scp: a control message is too long")
}

// ack reports success.
func (p *peer) ack() error {
	if err := p.out.WriteByte(0); err != nil {
		return err
	}
	return p.out.Flush()
}

// warn reports an error after which the copy continues with the next file.
func (p *peer) warn(err error) {
	p.failed = true
	_, _ = fmt.Fprintf(p.out, "\x01%s\n", strings.ReplaceAll(err.Error(), "\n", " "))
	_ = p.out.Flush()
}

// errEnd is an error of the client that ends the copy.
var errEnd = errors.New("scp: the client ended the copy")

// response reads the answer of the client. It reports whether the client accepted, and returns an
// error if the copy must end.
func (p *peer) response() (ok bool, err error) {
	b, err := p.in.ReadByte()
	switch {
	case err != nil:
		return false, err
	case b == 0:
		return true, nil
	case b != 1 && b != 2:
		return false, fmt.Errorf("scp: the client answered %q", b)
	}
	p.failed = true
	if _, err := p.line(); err != nil {
		return false, err
	}
	if b == 2 {
		return false, errEnd
	}
	return false, nil
}
