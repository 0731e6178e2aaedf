// Package folders tells what becomes of people's files when something breaks under
// them: their line, a storage proxy, the manager, a mount, the room on a disk. It has
// no code but tests.
package folders
