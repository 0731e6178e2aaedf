// Package accelerators runs the platform on machines that are made up, one of each
// vendor at a time, and looks from inside containers at what sessions get of their
// devices; then it kills plugins, breaks devices, and lets plugins lie.
package accelerators
