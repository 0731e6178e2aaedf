package output

import "strings"

// CSV returns a text for a cell of a CSV file. A spreadsheet does not take it for a formula.
func CSV(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
