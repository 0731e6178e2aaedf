// Package logs keeps the output of one kernel in rotating files and reads it
// back by byte offset. The runner's log command writes, the agent reads; both
// agree only on the directory. A file is named by the offset of its first
// byte, so offsets stay the same when old files go.
package logs
