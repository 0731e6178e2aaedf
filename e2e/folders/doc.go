// Package folders checks the files of users after failures: of the connection, a storage proxy, the
// manager, a mount, or a full disk. It contains only tests.
package folders
