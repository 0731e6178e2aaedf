package output

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTableFits(t *testing.T) {
	table := NewTable("NAME", "MESSAGE", "ID")
	table.Row("자료", "a message that is much too long for this terminal", "12345678")
	table.Row("b\x1b[2Jc", "", Cell{Text: "x", Color: Red})
	for _, width := range []int{0, 30, 50} {
		var b bytes.Buffer
		if err := (Printer{W: &b, Format: "table", Width: width}).Write(table); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
		for _, line := range lines {
			if width > 0 && Width(line) > width {
				t.Errorf("width %d: %q takes %d", width, line, Width(line))
			}
		}
		if strings.Contains(b.String(), "\x1b") {
			t.Error("control characters reach the terminal")
		}
		if at := strings.Index(lines[1], "12345678"); width == 0 && Width(lines[1][:at]) != Width(lines[0][:strings.Index(lines[0], "ID")]) {
			t.Errorf("columns are not aligned:\n%s", b.String())
		}
	}
}

func TestSpareColumnsGoFirst(t *testing.T) {
	table := NewTable("NAME", "HELD", "NOTE", "ID").Spare("HELD", "NOTE")
	table.Row("name-of-twenty-signs", "much", "some", "0190-0000-0000")
	for width, want := range map[int]string{
		0:  "name-of-twenty-signs  much  some  0190-0000-0000",
		48: "name-of-twenty-signs  much  some  0190-0000-0000",
		47: "name-of-twenty-signs  some  0190-0000-0000",
		41: "name-of-twenty-signs  0190-0000-0000",
		30: "name-of-twent…  0190-0000-0000",
		10: "name-of…  0190-0000-0000",
	} {
		var b bytes.Buffer
		if err := (Printer{W: &b, Format: "table", Width: width}).Write(table); err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(b.String(), "\n")[1]; got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}

func TestColorOnlyWhenAsked(t *testing.T) {
	table := NewTable("A")
	table.Row(Cell{Text: "x", Color: Red})
	var b bytes.Buffer
	_ = Printer{W: &b, Color: true}.Write(table)
	if want := "\x1b[2mA\x1b[0m\n\x1b[31mx\x1b[0m\n"; b.String() != want {
		t.Errorf("got %q", b.String())
	}
}

func TestYAMLKeepsText(t *testing.T) {
	var b bytes.Buffer
	v := struct {
		Z     string            `json:"z"`
		Slots map[string]string `json:"slots"`
		None  *int              `json:"none"`
		List  []string          `json:"list"`
	}{"yes", map[string]string{"cpu": "0.5", "mem": "1073741824"}, nil, []string{}}
	if err := (Printer{W: &b, Format: "yaml"}).Print(v, nil); err != nil {
		t.Fatal(err)
	}
	want := "z: \"yes\"\nslots:\n  cpu: \"0.5\"\n  mem: \"1073741824\"\nnone: null\nlist: []\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 1 << 30: "1 GiB", 1<<20 - 1: "1 MiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m1s", 25 * time.Hour: "1d1h"} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	if h, u := SlotHours("mem", "3865470566400"); h != "1.0000" || u != "mem GiB-hours" {
		t.Errorf("%s %s", h, u)
	}
}
