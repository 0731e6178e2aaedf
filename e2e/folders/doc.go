// Package folders checks what happens to people's files when something fails: the connection, a
// storage proxy, the manager, a mount, the space on a disk. It has no code but tests.
package folders
