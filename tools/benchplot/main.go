// Command benchplot draws the metric us/op of benchmarks as an SVG. It reads the output of go test
// -bench and draws a panel for every axis, with a line for every series, from names that end in
// series/axis=size. Both scales are logarithmic.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	panels, err := read(os.Stdin)
	if err == nil {
		_, err = io.WriteString(os.Stdout, draw(panels))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchplot:", err)
		os.Exit(1)
	}
}

// point is one measured size.
type point struct{ size, cost float64 }

// panel has the lines over one axis, by series.
type panel struct {
	axis  string
	lines map[string][]point
}

var (
	name   = regexp.MustCompile(`^Benchmark\S*?([a-z]+)/([a-z]+)=([0-9]+)(-[0-9]+)?\s`)
	metric = regexp.MustCompile(`\s([0-9.e+]+) us/op`)
)

// read returns the panels, in the order in which axes appear.
func read(r io.Reader) ([]*panel, error) {
	var panels []*panel
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		n, m := name.FindStringSubmatch(lines.Text()), metric.FindStringSubmatch(lines.Text())
		if n == nil || m == nil {
			continue
		}
		size, err := strconv.ParseFloat(n[3], 64)
		if err != nil {
			return nil, err
		}
		cost, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(panels, func(p *panel) bool { return p.axis == n[2] })
		if i < 0 {
			i = len(panels)
			panels = append(panels, &panel{n[2], map[string][]point{}})
		}
		panels[i].lines[n[1]] = append(panels[i].lines[n[1]], point{size, cost})
	}
	if len(panels) == 0 {
		return nil, fmt.Errorf("no benchmark of the form series/axis=size with us/op")
	}
	return panels, lines.Err()
}

const (
	width, height     = 250, 200
	left, top, bottom = 52, 22, 36
	gap               = 16
)

var colours = []string{"#1f6feb", "#d4691e", "#2da44e", "#8250df"}

// draw returns the SVG.
func draw(panels []*panel) string {
	var b strings.Builder
	total := len(panels)*(left+width+gap) + gap
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`, total, top+height+bottom+18)
	fmt.Fprintf(&b, "\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", total, top+height+bottom+18)
	low, high := math.Inf(1), math.Inf(-1)
	series := map[string]bool{}
	for _, p := range panels {
		for s, line := range p.lines {
			series[s] = true
			for _, at := range line {
				low, high = min(low, at.cost), max(high, at.cost)
			}
		}
	}
	floor, ceiling := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if floor == ceiling {
		ceiling++
	}
	names := slices.Sorted(maps.Keys(series))
	for i, p := range panels {
		p.draw(&b, float64(i*(left+width+gap)+left+gap/2), floor, ceiling, names)
	}
	for i, s := range names {
		x := left + 70*i
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			x, top+height+bottom+2, colours[i%len(colours)], x+14, top+height+bottom+11, html.EscapeString(s))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p *panel) draw(b *strings.Builder, x0, floor, ceiling float64, names []string) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, line := range p.lines {
		for _, at := range line {
			least, most = min(least, at.size), max(most, at.size)
		}
	}
	x := func(size float64) float64 {
		if least == most {
			return x0 + width/2
		}
		return x0 + width*math.Log(size/least)/math.Log(most/least)
	}
	y := func(cost float64) float64 { return top + height*(ceiling-math.Log10(cost))/(ceiling-floor) }
	fmt.Fprintf(b, "<text x=\"%.0f\" y=\"14\" font-weight=\"bold\">%s</text>\n", x0, html.EscapeString(p.axis))
	for e := floor; e <= ceiling; e++ {
		at := y(math.Pow(10, e))
		fmt.Fprintf(b, "<path d=\"M%.0f %.1fh%d\" stroke=\"#d0d7de\"/><text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			x0, at, width, x0-4, at+4, duration(math.Pow(10, e)))
	}
	seen := map[float64]bool{}
	for i, s := range names {
		line := p.lines[s]
		slices.SortFunc(line, func(a, b point) int { return int(a.size - b.size) })
		path := ""
		for _, at := range line {
			path += fmt.Sprintf("%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[path == ""], x(at.size), y(at.cost))
			fmt.Fprintf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n", x(at.size), y(at.cost), colours[i%len(colours)])
			if !seen[at.size] {
				seen[at.size] = true
				fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", x(at.size), top+height+14, at.size)
			}
		}
		fmt.Fprintf(b, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", path, colours[i%len(colours)])
	}
}

// duration formats microseconds.
func duration(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.0f s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.0f ms", us/1e3)
	}
	return fmt.Sprintf("%g µs", us)
}
