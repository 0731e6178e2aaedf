package image

// Abandon releases the lock, as the end of the process does.
func Abandon(i *Image) { i.lock.Close(); i.lock = nil }
