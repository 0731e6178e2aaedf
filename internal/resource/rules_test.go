package resource

import "testing"

func TestRules(t *testing.T) {
	var r Rules
	r.Add("x.device", false, []string{"x.shares", "x.mem"})
	r.Add("x.shares", true, nil)
	r.Add("x.mem", true, nil)
	r.Add("x.part", false, []string{"x.dev*"})
	capacity := Slots{"x.device": 1, "x.shares": 1000, "x.mem": 1 << 30, "x.part": 2}
	for name, c := range map[string]struct {
		used     Slots
		wantText string
	}{
		"nothing":           {Slots{}, ""},
		"whole":             {Slots{"x.device": 1}, ""},
		"two names":         {Slots{"x.shares": 500, "x.mem": 1 << 29}, ""},
		"too much":          {Slots{"x.part": 3}, "x.part 3 of x.device 1, x.mem 1073741824, x.part 2, x.shares 1"},
		"whole and part":    {Slots{"x.device": 1, "x.shares": 1}, "x.device and x.shares, which exclude each other"},
		"by its ending":     {Slots{"x.device": 1, "x.part": 1}, "x.device and x.part, which exclude each other"},
		"an amount of zero": {Slots{"x.device": 1, "x.shares": 0}, ""},
		"beside it":         {Slots{"x.shares": 1, "x.part": 1}, ""},
	} {
		if got := r.Against(c.used, capacity); got != c.wantText {
			t.Errorf("%s: %q, want %q", name, got, c.wantText)
		}
	}
	if got := new(Rules).Against(Slots{"x.device": 1, "x.shares": 1}, capacity); got != "" {
		t.Errorf("without rules: %q", got)
	}
}
