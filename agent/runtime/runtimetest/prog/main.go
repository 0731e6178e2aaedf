// Command prog is the only program in the test image. Each verb simulates one behavior of a
// workload; the fake runtime has the same verbs.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	if len(os.Args) < 2 {
		fail("no verb")
	}
	run, ok := verbs[os.Args[1]]
	if !ok {
		fail("unknown verb " + os.Args[1])
	}
	run(os.Args[2:])
}

func fail(a ...any) {
	fmt.Fprintln(os.Stderr, a...)
	os.Exit(1)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		fail(err)
	}
	return n
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

var verbs = map[string]func(args []string){
	"exit":        func(a []string) { os.Exit(number(a[0])) },
	"sleep":       func(a []string) { time.Sleep(time.Duration(number(a[0])) * time.Second) },
	"ignore-term": ignoreSignals,
	"alloc":       alloc,
	"fork":        fork,
	"lines":       lines,
	"print":       func(a []string) { fmt.Println(a) },
	"echo":        func([]string) { _, err := io.Copy(os.Stdout, os.Stdin); check(err) },
	"err":         func(a []string) { fmt.Fprintln(os.Stderr, a[0]) },
	"env":         func([]string) { printAll(os.Environ()) },
	"size":        size,
	"cat":         func(a []string) { b, err := os.ReadFile(a[0]); check(err); os.Stdout.Write(b) },
	"write":       func(a []string) { check(os.WriteFile(a[0], []byte(a[1]), 0o666)) },
	"fill":        fill,
	"mkdir":       func(a []string) { check(os.Mkdir(a[0], 0o777)) },
	"ls":          ls,
	"pwd":         func([]string) { d, err := os.Getwd(); check(err); fmt.Println(d) },
	"id":          func([]string) { fmt.Println(os.Getuid(), os.Getgid()) },
	"groups":      func([]string) { list, err := os.Getgroups(); check(err); fmt.Println(list) },
	"mknod":       func(a []string) { check(syscall.Mknod(a[0], syscall.S_IFCHR|0o600, 10<<8|99)) },
	"unshare":     func([]string) { check(syscall.Unshare(syscall.CLONE_NEWUSER)) },
	"raw":         raw,
	"serve":       serve,
	"connect":     connect,
	"burn":        burn,
	"orphan":      orphan,
	"juggle":      juggle,
	"refused":     refused,
	"ioctl":       func(a []string) { fmt.Println(ioctl(open(a[1]), hex(a[0]), pointer(a[2:]))) },
	"clone":       func(a []string) { fmt.Println(ioctl(open(a[1]), 0x40049409, open(a[0]))) },
	"pace":        pace,
	"tick":        tick,
}

// ignoreSignals ignores all signals except SIGKILL.
func ignoreSignals([]string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	fmt.Println("ready")
	time.Sleep(time.Hour)
}

// alloc allocates the given number of MiB and then idles.
func alloc(a []string) {
	b := make([]byte, number(a[0])<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	fmt.Println("allocated")
	time.Sleep(time.Hour)
}

// fork starts processes until this fails, and prints their number.
func fork(a []string) {
	n := 0
	for range number(a[0]) {
		if err := exec.Command("/proc/self/exe", "sleep", "60").Start(); err != nil {
			fmt.Println("refused:", err)
			break
		}
		n++
	}
	fmt.Println("forked", n)
}

// fill writes a file until the disk is full.
func fill(a []string) {
	f, err := os.Create(a[0])
	check(err)
	for part := make([]byte, 1<<20); ; {
		_, err := f.Write(part)
		check(err)
	}
}

func lines(a []string) {
	for i := range number(a[0]) {
		fmt.Printf("line %06d of the output\n", i)
	}
}

// tick counts forever, odd numbers on stdout and even ones on stderr, and exits with 3 when a write
// fails.
func tick([]string) {
	for i := 1; ; i++ {
		out := os.Stdout
		if i%2 == 0 {
			out = os.Stderr
		}
		if _, err := fmt.Fprintf(out, "tick %06d\n", i); err != nil {
			os.Exit(3)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func printAll(list []string) {
	for _, s := range list {
		fmt.Println(s)
	}
}

func size([]string) {
	var w struct{ rows, cols, x, y uint16 }
	for range 100 {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, 0, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&w))); e != 0 {
			fail(e)
		}
		fmt.Println(w.cols, w.rows)
		time.Sleep(50 * time.Millisecond)
	}
}

func ls(a []string) {
	entries, err := os.ReadDir(a[0])
	check(err)
	for _, e := range entries {
		fmt.Println(e.Name())
	}
}

func raw([]string) {
	_, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP)
	check(err)
}

// serve answers one line per connection with the same line.
func serve(a []string) {
	l, err := net.Listen("tcp", a[0])
	check(err)
	fmt.Println("listening", l.Addr())
	for {
		c, err := l.Accept()
		check(err)
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}()
	}
}

// connect tries to connect to an address and to read a response.
func connect(a []string) {
	c, err := net.DialTimeout("tcp", a[0], 2*time.Second)
	check(err)
	defer c.Close()
	check(c.SetDeadline(time.Now().Add(2 * time.Second)))
	_, err = c.Write([]byte("ping\n"))
	check(err)
	var b [5]byte
	_, err = io.ReadFull(c, b[:])
	check(err)
	if !bytes.Equal(b[:], []byte("ping\n")) {
		fail("another answer")
	}
	fmt.Println("reached")
}

func burn([]string) {
	for i := 0; ; i++ {
		if i < 0 {
			fmt.Println(i)
		}
	}
}

// orphan leaves a child that outlives its parent.
func orphan([]string) {
	check(exec.Command("/proc/self/exe", "sleep", "1").Start())
	fmt.Println("left")
}

// juggle renames a directory, NAME0, as fast as it can, each time to a new name.
func juggle(a []string) {
	for i := 0; ; i++ {
		check(os.Rename(a[0]+strconv.Itoa(i), a[0]+strconv.Itoa(i+1)))
	}
}
