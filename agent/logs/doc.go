// Package logs stores the output of one kernel in rotating files and reads it by byte offset. The
// runner's log command writes and the agent reads; they share only the directory. The name of a
// file is the offset of its first byte, so offsets stay valid when old files are removed.
package logs
