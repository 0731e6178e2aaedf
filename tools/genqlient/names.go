package main

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// initialisms maps the words of genqlient to their usual spelling.
var initialisms = map[string]string{
	"Id": "ID", "Url": "URL", "Ok": "OK", "Csv": "CSV", "Totp": "TOTP", "Ssh": "SSH", "Uid": "UID", "Gid": "GID",
	"Gids": "GIDs", "Numa": "NUMA", "Pci": "PCI", "Pcie": "PCIe", "Http": "HTTP", "P2p": "P2P",
	"Us": "US",
}

var word = regexp.MustCompile(`[A-Z][a-z0-9]*`)

// names renames the identifiers of a Go file: references and initialisms.
func (t *tidier) names(text []byte) []byte {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	var out []byte
	at := 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return append(out, text[at:]...)
		}
		if tok != token.IDENT {
			continue
		}
		offset := file.Offset(pos)
		out = append(append(out, text[at:offset]...), t.name(lit)...)
		at = offset + len(lit)
	}
}

func (t *tidier) name(id string) string {
	if by := t.renamed[id]; by != "" {
		return by
	}
	return word.ReplaceAllStringFunc(id, func(w string) string {
		if by := initialisms[w]; by != "" {
			return by
		}
		return w
	})
}

var prepared = regexp.MustCompile(`\bnode: node_\w+`)

// documents reverts the changes of prepare in the operations.
func (t *tidier) documents(text []byte) []byte {
	out := prepared.ReplaceAllString(string(text), "node")
	for name, op := range t.doc.operations {
		head := string(op.Operation) + " "
		out = strings.ReplaceAll(out, "\n"+head+name+" ", "\n"+head+op.Name+" ")
		out = strings.ReplaceAll(out, `OpName: "`+name+`"`, `OpName: "`+op.Name+`"`)
	}
	return []byte(out)
}
