// Package libtpu is the part of libtpu's metric service that the TPU plugin uses. Only that plugin
// imports it.
package libtpu
