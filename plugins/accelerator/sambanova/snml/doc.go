// Package snml is the little of SambaNova's management layer that the SambaNova
// plugin asks, which alone imports it.
package snml
