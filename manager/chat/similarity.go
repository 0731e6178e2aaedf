package chat

import "strings"

// maxWords limits the words of each text that are compared: the time grows with their product.
const maxWords = 2000

// similarity returns the share of the words that two texts have in the same order: twice the length of their longest common
// sequence of words, divided by the number of words of both. Of longer texts, the first words count.
func similarity(a, b string) float64 {
	x, y := words(a), words(b)
	if len(x)+len(y) == 0 {
		return 1
	}
	last, row := make([]int, len(y)+1), make([]int, len(y)+1)
	for _, w := range x {
		for j, o := range y {
			if w == o {
				row[j+1] = last[j] + 1
			} else {
				row[j+1] = max(last[j+1], row[j])
			}
		}
		last, row = row, last
	}
	return 2 * float64(last[len(y)]) / float64(len(x)+len(y))
}

func words(s string) []string {
	list := strings.Fields(s)
	return list[:min(len(list), maxWords)]
}
