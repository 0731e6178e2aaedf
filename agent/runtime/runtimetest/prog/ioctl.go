package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

func hex(s string) uintptr {
	n, err := strconv.ParseUint(s, 16, 64)
	check(err)
	return uintptr(n)
}

// open opens an existing file or directory, or creates a file.
func open(path string) uintptr {
	fd, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err != nil {
		fd, err = syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT, 0o644)
	}
	check(err)
	return uintptr(fd)
}

// pointer returns the argument of most ioctls: a page of zeros, with a name at the offset at which
// btrfs expects one.
func pointer(name []string) uintptr {
	page := new([4096]byte)
	if len(name) > 0 {
		copy(page[8:], name[0])
	}
	return uintptr(unsafe.Pointer(page))
}

func ioctl(fd, command, argument uintptr) string {
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, command, argument); e != 0 {
		return e.Error()
	}
	return "done"
}

// refused prints the ioctls that are not permitted, by the lower half of the command. It tries all
// of them, with upper halves that the kernel does not define.
func refused([]string) {
	fd := open("/dev/null")
	for lower := range uintptr(1 << 16) {
		n := 0
		for _, upper := range []uintptr{0x1fff, 0xffff, 0x1_0000_1fff, 0xffff_ffff_ffff} {
			if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, upper<<16|lower, 0); e == syscall.EPERM {
				n++
			}
		}
		if n > 0 {
			fmt.Printf("%04x %d\n", lower, n)
		}
	}
}

// pace prints the duration of an ioctl, and of a system call that no filter inspects.
func pace([]string) {
	r, _, err := os.Pipe()
	check(err)
	const calls = 200_000
	var n int32
	for name, call := range map[string]func(){
		"ioctl":   func() { syscall.Syscall(syscall.SYS_IOCTL, r.Fd(), 0x541b, uintptr(unsafe.Pointer(&n))) },
		"getppid": func() { syscall.Syscall(syscall.SYS_GETPPID, 0, 0, 0) },
	} {
		begin := time.Now()
		for range calls {
			call()
		}
		fmt.Println(name, time.Since(begin).Nanoseconds()/calls)
	}
}
