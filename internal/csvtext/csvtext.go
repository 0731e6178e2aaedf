// Package csvtext writes texts for CSV files that people open in spreadsheets.
package csvtext

import "strings"

// Cell returns a text for a cell. A spreadsheet does not take it for a formula.
func Cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}
