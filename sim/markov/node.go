package markov

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// kind tells what a node of a document is.
type kind int

const (
	other kind = iota // a null, a boolean, an anchor, an alias, a tag: nothing that a table has
	mapping
	sequence
	text
	numeral
)

// node is a value of a YAML document, and where it stands.
type node struct {
	kind    kind
	file    string
	line    int
	path    string // e.g. rows[3].threshold; empty for the document
	entries []entry
	items   []node
	text    string
	number  float64
	raw     string // of what is neither a mapping nor a sequence
}

// entry is one field of a mapping.
type entry struct {
	key   string
	value node
}

// describe says what was found, for an error.
func (n node) describe() string {
	switch n.kind {
	case mapping:
		return "a mapping"
	case sequence:
		return "a list"
	case text:
		return strconv.Quote(n.text)
	}
	return n.raw
}

// parse reads the one document of a file.
func parse(doc []byte, file string) (root node, err error) {
	malformed := func(line int, found string) error {
		return &TableError{File: file, Line: line, Found: found, Wanted: "one YAML document"}
	}
	defer func() { // should the parser panic, it is over a user's file, which must not end the program
		if p := recover(); p != nil {
			err = malformed(0, fmt.Sprintf("malformed YAML (%v)", p))
		}
	}()
	tree, err := parser.ParseBytes(doc, 0)
	if err != nil {
		line, found := 0, err.Error()
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			found = syntax.GetMessage()
			if t := syntax.GetToken(); t != nil && t.Position != nil {
				line = t.Position.Line
			}
		}
		return node{}, malformed(line, strings.ReplaceAll(found, "\n", " "))
	}
	var body ast.Node
	for _, d := range tree.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			return node{}, malformed(lineOf(d.Body), "a second one")
		}
		body = d.Body
	}
	if body == nil {
		return node{}, malformed(0, "an empty file")
	}
	return convert(body, file, ""), nil
}

// convert copies a tree, with the path of every node.
func convert(n ast.Node, file, path string) node {
	out := node{file: file, path: path, line: lineOf(n), raw: "nothing"}
	if n == nil {
		return out
	}
	if t := n.GetToken(); t != nil {
		out.raw = strconv.Quote(t.Value)
	}
	switch v := n.(type) {
	case ast.MapNode:
		out.kind = mapping
		for it := v.MapRange(); it.Next(); {
			key := ""
			if t := it.Key().GetToken(); t != nil {
				key = t.Value
			}
			at := key
			if path != "" {
				at = path + "." + key
			}
			out.entries = append(out.entries, entry{key, convert(it.Value(), file, at)})
		}
	case *ast.SequenceNode:
		out.kind = sequence
		for i, item := range v.Values {
			out.items = append(out.items, convert(item, file, fmt.Sprintf("%s[%d]", path, i)))
		}
	case *ast.StringNode:
		out.kind, out.text = text, v.Value
		// The parser takes 1e6, without a point, for text; YAML 1.2 does not.
		if x, err := strconv.ParseFloat(v.Value, 64); err == nil && v.Token.Type == token.StringType &&
			strings.Trim(v.Value, "+-.eE0123456789") == "" {
			out.kind, out.number = numeral, x
		}
	case *ast.LiteralNode:
		out.kind, out.text = text, v.Value.Value
	case *ast.IntegerNode:
		out.kind = numeral
		switch x := v.Value.(type) {
		case int64:
			out.number = float64(x)
		case uint64:
			out.number = float64(x)
		default:
			out.number = math.NaN()
		}
	case *ast.FloatNode:
		out.kind, out.number = numeral, v.Value
	}
	return out
}

func lineOf(n ast.Node) int {
	if n == nil {
		return 0
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}
