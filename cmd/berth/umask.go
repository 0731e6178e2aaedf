package main

import (
	"os"
	"sync"
	"syscall"
)

// umask reads the process's mask once; that means to set it for a moment.
var umask = sync.OnceValue(func() os.FileMode {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return os.FileMode(mask)
})
