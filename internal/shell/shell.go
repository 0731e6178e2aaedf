// Package shell writes texts for POSIX shells.
package shell

import "strings"

// Quote returns a word that a shell reads as exactly the text. A zero byte cannot be in a word.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
