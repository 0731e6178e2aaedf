// Package libtpu is the little of libtpu's metric service that the TPU plugin
// asks, which alone imports it.
package libtpu
