package build_test

import "runtime"

// lockThread keeps the goroutine on its thread, which ends with it.
func lockThread() { runtime.LockOSThread() }
