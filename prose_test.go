package berth

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// phrase is wording that readers stumble over, with a replacement. bad is a text that contains it,
// good one that does not.
type phrase struct {
	pattern string // spaces match line breaks, too
	instead string
	bad     string
	good    string
}

// phrases come from docs/style.md. A phrase belongs here only if it has a plain replacement in
// every sentence; reviewers decide about other wording.
var phrases = []phrase{
	{`tells? whether`, `"reports whether"`, "It tells whether\nit runs.", "Tell us what you need, whether it exists or not."},
	{`(is|are|was|were|be|been|being|gets?) told`, `"is notified of", "gets" or "is reported"`, "The owner is told of it.", "The manual told them so."},
	{`whoever|whomever`, `"anyone who", "the user who"`, "Whoever runs it must know.", "Those who run it must know."},
	{`who asks`, `"the caller", "the user"`, "It belongs to who asks.", "The user asks for it."},
	{`anew`, `"again"`, "They start anew.", "A new session starts."},
	{`as ever`, `"as before", "as usual"`, "It works as ever.", "It is as every other one."},
	{`(go|goes|going|went) on( (where|as|with|without|until|while|when|after|and|from|alone|there)\b|[.,;:)])`,
		`"continues"`, "The upload goes on.", "The limit goes on the policy."},
	{`(is|are|be|was|were) had`, `"is available", "exists"`, "It can be had again.", "It has had one."},
	{`(he|him|his|himself)`, `"they", "them", "their"`, "He ends his session.", "They end the session; the machine is here."},
	{`nobody`, `"no one", "no user"`, "Nobody sees it.", "The user `nobody` sees it."},
	{`for ever`, `"forever"`, "It is kept for ever.", "It is kept for every user."},
	{`(has|have|had) not (the|a|an)`, `"lacks", "does not have"`, "It has not the scope.", "It has not ended."},
	{`(allows?|permits?|enables?) to`, `"lets people …"`, "This allows to end it.", "This allows them to end it."},
	{`mend(s|ed|ing)?`, `"repair"`, "The audit mends it.", "I recommend it."},
	{`strays`, `"orphans"`, "It ends strays.", "The kind is `stray`."},
	{`made[- ]up ([^o]|o[^f])`, `"simulated", "generated"`, "On made-up machines it runs.", "It is made up of two parts."},
	{`oneself|one's`, `"your own", "the user's own"`, "One's own folders.", "Your own folders."},
	{`lest|thereof|therein|whereof|wherein|hereof`, `plain words`, "The disk and the limit thereof.", "At least there."},
	{`(is|are) not there`, `"does not exist", "is missing"`, "The file is not there.", "It is not therefore wrong."},
	{`stubborn(ly)?`, `"ignores SIGTERM"`, "The container is stubborn.", "The container ignores SIGTERM."},
	{`villains?|misdeeds?`, `"faulty plugin", "fault"`, "The villain has one misdeed.", "The faulty plugin has one fault."},
	{`forlorn|untold`, `"without an owner", "not reported"`, "The forlorn parts are removed.", "The parts without an upload are removed."},
	{`stands? in for`, `"simulates", "replaces"`, "It stands in for the agent.", "The agents stand in a row."},
	{`beforehand`, `"before", "in advance"`, "It is checked beforehand.", "It is checked before the start."},
	{`in vain`, `"without success"`, "It tried in vain.", "It is in a vein."},
	{`that which`, `the noun`, "It ends that which runs.", "The rule that, which is rare, ends it."},
}

// negated finds "is not a directory", and findings leaves out "there is no directory" and
// "is no longer".
var negated = regexp.MustCompile(`(?i)((?:[\pL\pN]+\s+){1,2})(?:is|are|was|were|be)\s+no\s+(\pL+)`)

var comparisons = []string{"longer", "more", "less", "fewer", "better", "worse", "different"}

type finding struct {
	line          int
	text, instead string
}

// findings returns the phrases of a text that docs/style.md advises against.
func findings(text string) []finding {
	var all []finding
	add := func(at []int, instead string) {
		all = append(all, finding{1 + strings.Count(text[:at[0]], "\n"), strings.Join(strings.Fields(text[at[0]:at[1]]), " "), instead})
	}
	for _, p := range phrases {
		for _, at := range p.compile().FindAllStringIndex(text, -1) {
			add(at, p.instead)
		}
	}
	for _, at := range negated.FindAllStringSubmatchIndex(text, -1) {
		before, after := strings.Fields(strings.ToLower(text[at[2]:at[3]])), strings.ToLower(text[at[4]:at[5]])
		if !slices.Contains(before, "there") && !slices.Contains(comparisons, after) {
			add(at[:2], `"is not a"`)
		}
	}
	return all
}

func (p phrase) compile() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(p.pattern, " ", `\s+`) + `)` + boundary(p.pattern))
}

// boundary ends a pattern at the end of a word, unless the pattern has an end of its own.
func boundary(pattern string) string {
	if strings.HasSuffix(pattern, "])") {
		return ""
	}
	return `\b`
}

var (
	// Code, and the addresses of links, are not prose.
	notMarkdown = regexp.MustCompile("(?ms)^ *```.*?^ *```|^    [^\n]*$|`[^`]*`|\\]\\([^)]*\\)")
	literal     = regexp.MustCompile("\"\"\"(?s:.*?)\"\"\"|\"(?:[^\"\\\\\n]|\\\\.)*\"|`[^`]*`")
	sentence    = regexp.MustCompile(`\pL+\s+\pL`)
	// Comments are removed before literals are found, because an apostrophe or quote in a comment
	// would begin a literal.
	comment     = regexp.MustCompile(`(?s:/\*.*?\*/)|(?m:^\s*//.*$)`)
	commentMark = regexp.MustCompile(`(?m)^[ \t.]*//`)
)

// prose returns the text with everything blank that people do not read as sentences.
// Line breaks stay, so that lines keep their numbers.
func prose(path, text string) string {
	if strings.HasSuffix(path, ".md") {
		return notMarkdown.ReplaceAllStringFunc(text, blank)
	}
	if !strings.HasSuffix(path, ".graphql") {
		text = comment.ReplaceAllStringFunc(text, blank)
	}
	var b strings.Builder
	at := 0
	for _, m := range literal.FindAllStringIndex(text, -1) {
		b.WriteString(blank(text[at:m[0]]))
		if s := text[m[0]:m[1]]; sentence.MatchString(s) {
			b.WriteString(s)
		} else {
			b.WriteString(blank(s))
		}
		at = m[1]
	}
	return b.String() + blank(text[at:])
}

// inGo are the phrases, by their pattern, that are also looked for in Go: in comments, errors
// and log lines. The others are words of the code, of tests or of sentences that quote them.
var inGo = []string{`tells? whether`, `whoever|whomever`, `as ever`, `(has|have|had) not (the|a|an)`, `strays`, `lest|thereof|therein|whereof|wherein|hereof`, `that which`,
	`for ever`, `mend(s|ed|ing)?`, `made[- ]up ([^o]|o[^f])`, `stubborn(ly)?`, `villains?|misdeeds?`, `in vain`, `beforehand`}

// inServers are the phrases that are also looked for in Go outside of notServers.
var (
	inServers = []string{`(is|are|was|were|be|been|being|gets?) told`, `who asks`, `anew`, `nobody`, `(is|are|be|was|were) had`, `forlorn|untold`, `(is|are) not there`, `oneself|one's`,
		`(go|goes|going|went) on( (where|as|with|without|until|while|when|after|and|from|alone|there)\b|[.,;:)])`}
	notServers = regexp.MustCompile(`^(client|cmd/berth[^/]*|graph)/`)
)

// goProse returns the comments and the texts of a Go file with their lines, and an empty
// text for a generated file.
func goProse(t *testing.T, path string, source []byte) string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(file) {
		return ""
	}
	out := bytes.Repeat([]byte("."), len(source)) // by bytes, as offsets count
	for i, c := range source {
		if c == '\n' {
			out[i] = c
		}
	}
	copyOf := func(pos, end token.Pos) {
		copy(out[fset.Position(pos).Offset:], source[fset.Position(pos).Offset:fset.Position(end).Offset])
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && sentence.MatchString(l.Value) {
			copyOf(l.Pos(), l.End())
		}
		return true
	})
	for _, group := range file.Comments {
		copyOf(group.Pos(), group.End())
	}
	return commentMark.ReplaceAllStringFunc(string(out), func(s string) string { return strings.Repeat(" ", len(s)) })
}

func blank(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return '.'
	}, s)
}

// TestProse reads documents, the descriptions of the API, and the strings of the page.
func TestProse(t *testing.T) {
	files, err := exec.Command("git", "ls-files", "-co", "--exclude-standard",
		"*.md", "graph/*.graphql", "web/src/*.ts", "web/src/*.tsx", ":!*.test.ts", ":!*.test.tsx").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	read := 0
	for path := range strings.Lines(string(files)) {
		path = strings.TrimSpace(path)
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // removed, not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		read++
		for _, f := range findings(prose(path, string(text))) {
			t.Errorf("%s:%d: %q: write %s (docs/style.md)", path, f.line, f.text, f.instead)
		}
	}
	if read < 300 {
		t.Errorf("only %d files read: does the check still find them?", read)
	}
}

// TestProseOfGo reads the comments and the texts of Go, tests excepted.
func TestProseOfGo(t *testing.T) {
	files, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "*.go", ":!*_test.go", ":!tools").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	read := 0
	for path := range strings.Lines(string(files)) {
		path = strings.TrimSpace(path)
		source, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // removed, not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		read++
		text := goProse(t, path, source)
		for _, p := range phrases {
			if !slices.Contains(inGo, p.pattern) && (!slices.Contains(inServers, p.pattern) || notServers.MatchString(path)) {
				continue
			}
			for _, at := range p.compile().FindAllStringIndex(text, -1) {
				t.Errorf("%s:%d: %q: write %s (docs/style.md)", path, 1+strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]], p.instead)
			}
		}
	}
	if read < 1000 {
		t.Errorf("only %d files read: does the check still find them?", read)
	}
}

func TestProseOfGoReadsCommentsAndTexts(t *testing.T) {
	for _, c := range []struct {
		name, source string
		found        bool
	}{
		{"a comment over two lines", "package a\n\n// It tells\n// whether it runs.\nvar b int\n", true},
		{"an error", "package a\n\nvar b = \"it works as ever\"\n", true},
		{"code", "package a\n\nvar thereof = b + thereof2\n", false},
		{"a generated file", "// Code generated by x. DO NOT EDIT.\n\npackage a\n\n// It tells whether it runs.\nvar b int\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := len(findings(goProse(t, "a.go", []byte(c.source)))) > 0; got != c.found {
				t.Errorf("found is %t, want %t", got, c.found)
			}
		})
	}
}

func TestProseFindsEachPhrase(t *testing.T) {
	for _, p := range phrases {
		if !p.compile().MatchString(prose("x.md", p.bad)) {
			t.Errorf("%s is not found in %q", p.pattern, p.bad)
		}
		if at := p.compile().FindString(prose("x.md", p.good)); at != "" {
			t.Errorf("%s: false alarm %q in %q", p.pattern, at, p.good)
		}
	}
}

func TestProseReadsOnlySentences(t *testing.T) {
	for _, c := range []struct {
		name, path, text string
		lines            []int
	}{
		{"a phrase over two lines", "a.md", "One.\n\nThe owner is\ntold of it.", []int{3}},
		{"two in one line", "a.md", "He said that it starts anew.", []int{1, 1}},
		{"negation with a noun", "a.md", "It is no directory.", []int{1}},
		{"negations that are English", "a.md", "There is no directory. There may be no\nleader. It is no longer one, and is no more than that.", nil},
		{"a code span", "a.md", "The word `anew` is not ours.", nil},
		{"a code span over two lines", "a.md", "Run `berth\nanew` now.", nil},
		{"a code block", "a.md", "Run\n```\nberth anew\n```\nanew", []int{5}},
		{"an indented block", "a.md", "Run\n\n    berth anew\n", nil},
		{"the address of a link", "a.md", "[ADR 21](adr/what-he-says-anew.md)", nil},
		{"the text of a link", "a.md", "[start anew](a.md)", []int{1}},
		{"a description", "graph/a.graphql", "\"Starts it anew.\"\nanew: Int", []int{1}},
		{"a long description", "graph/a.graphql", "\"\"\"\nIt is\nkept for ever.\n\"\"\"\nid: ID!", []int{3}},
		{"a comment of a schema", "graph/a.graphql", "# anew\nid: ID!", nil},
		{"a text of the page", "web/src/a.tsx", "const his = 1;\nreturn t(\"It starts anew.\");", []int{2}},
		{"a template of the page", "web/src/a.tsx", "return `${n} sessions\nstart anew`;", []int{2}},
		{"a comment of the page", "web/src/a.tsx", "const q = '\"';\n/** Starts it anew. */\nconst r = '\"';", nil},
		{"a name in the page", "web/src/a.tsx", "import { nobody } from \"./nobody\";", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := findings(prose(c.path, c.text))
			if len(got) != len(c.lines) {
				t.Fatalf("got %v, want lines %v", got, c.lines)
			}
			for i, f := range got {
				if f.line != c.lines[i] {
					t.Errorf("got line %d, want %d", f.line, c.lines[i])
				}
			}
		})
	}
}
