// Package variant knows the engines that serve models: how each is started, checked and measured, and the
// options that people set without knowing its command line. The engines are data (variants.yaml).
package variant
