// Package accelerators runs the platform on simulated machines, one of each vendor at a time, and
// checks from inside containers what sessions get of their devices; then it kills plugins, breaks
// devices, and makes plugins report wrong data.
package accelerators
