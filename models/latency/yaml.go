package latency

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFile bounds a file that is read into memory, bytes; an embedded profile written out is some 10 kB.
const maxFile = 16 << 20

// document is a YAML file: kept, so that an error in a value can be traced to its line.
type document struct {
	name string
	text []byte
}

// readYAML decodes the one document in r, strictly: a field that into doesn't have, or one given twice, is an error.
// name stands in errors.
func readYAML(name string, r io.Reader, into any) (doc document, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return document{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > maxFile {
		return document{}, fmt.Errorf("%s: longer than %d MiB", name, maxFile>>20)
	}
	doc = document{name, text}
	defer func() { // should the parser ever panic, it is over a user's file, which must not end the program
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: malformed YAML (%v)", name, p)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict(), yaml.CustomUnmarshaler(unmarshalCount))
	if err := decoder.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return doc, fmt.Errorf("%s: empty", name)
		}
		return doc, doc.syntax(err)
	}
	var more any
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return doc, fmt.Errorf("%s: more than one YAML document", name)
	}
	return doc, nil
}

// countError is a value where a whole number was wanted; the decoder alone would cut 1.5 down to 1.
type countError struct{ text string }

func (e *countError) Error() string { return fmt.Sprintf("%s is no whole number", e.text) }

// countPath matches the path of a whole number: those of DecodeGrid and PrefillGrid are all there are.
var countPath = regexp.MustCompile(`\.(batch|context_tokens|tokens)\[\d+\]$`)

func unmarshalCount(n *int, text []byte) (err error) {
	if *n, err = strconv.Atoi(string(bytes.TrimSpace(text))); err != nil {
		return &countError{string(bytes.TrimSpace(text))}
	}
	return nil
}

// syntax puts the place before a decoder's error, and says what was found and wanted.
func (d document) syntax(err error) error {
	var count *countError
	if errors.As(err, &count) {
		found := d.node(func(n ast.Node) bool {
			return n.GetToken().Value == count.text && countPath.MatchString(n.GetPath())
		})
		if found == nil {
			return fmt.Errorf("%s: a count is %q, wanted a whole number", d.name, count.text)
		}
		return d.at(found, nil, fmt.Sprintf("is %s, wanted a whole number", count.text))
	}
	var at yaml.Error
	if !errors.As(err, &at) {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	place := at.GetToken()
	found := d.node(func(n ast.Node) bool {
		return place != nil && place.Position != nil && n.GetToken().Position.Offset == place.Position.Offset
	})
	var wrongType *yaml.TypeError
	var wrongNode *yaml.UnexpectedNodeTypeError
	switch {
	case found != nil && errors.As(err, &wrongType):
		return d.at(found, place, fmt.Sprintf("is %s, wanted %s", kindOf(found), wantedType(wrongType.DstType)))
	case found != nil && errors.As(err, &wrongNode):
		return d.at(found, place, fmt.Sprintf("is %s, wanted %s", kindOf(found), nodeKind(wrongNode.Expected)))
	}
	return d.at(nil, place, strings.ReplaceAll(at.GetMessage(), "\n", " "))
}

// at is an error at a node, named by its path, or else at a token.
func (d document) at(n ast.Node, place *token.Token, problem string) error {
	if n != nil {
		place = n.GetToken()
		path := strings.TrimPrefix(strings.TrimPrefix(n.GetPath(), "$"), ".")
		if path == "" {
			path = "the document"
		}
		problem = path + " " + problem
	}
	if place == nil || place.Position == nil {
		return fmt.Errorf("%s: %s", d.name, problem)
	}
	return fmt.Errorf("%s:%d: %s", d.name, place.Position.Line, problem)
}

// kindOf says what a node is: its text if it is a scalar.
func kindOf(n ast.Node) string {
	if s, ok := n.(ast.ScalarNode); ok {
		if _, text := n.(*ast.StringNode); text {
			return strconv.Quote(fmt.Sprint(s.GetValue()))
		}
		return n.GetToken().Value
	}
	return nodeKind(n.Type())
}

func nodeKind(t ast.NodeType) string {
	switch t {
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	default:
		return strings.ToLower(t.String())
	}
}

func wantedType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	default:
		return t.Kind().String()
	}
}

// visitor calls a function for each node of a tree.
type visitor func(ast.Node)

func (v visitor) Visit(n ast.Node) ast.Visitor {
	v(n)
	return v
}

// node finds the first value that matches; nil where there is none, or the text is no YAML.
func (d document) node(match func(ast.Node) bool) (found ast.Node) {
	defer func() { _ = recover() }() // as in readYAML
	file, err := parser.ParseBytes(d.text, 0)
	if err != nil {
		return nil
	}
	for _, doc := range file.Docs {
		ast.Walk(visitor(func(n ast.Node) {
			if found == nil && n != nil && n.GetToken() != nil && n.GetToken().Position != nil && match(n) {
				found = n
			}
		}), doc.Body)
	}
	return found
}

// trace puts file and line before a field error: the line of the field, or of the nearest part of its path that the
// file has.
func (d document) trace(err error) error {
	var f *fieldError
	if !errors.As(err, &f) {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	if line := d.line(f.path); line > 0 {
		return fmt.Errorf("%s:%d: %w", d.name, line, err)
	}
	return fmt.Errorf("%s: %w", d.name, err)
}

func (d document) line(path string) (line int) {
	defer func() {
		if recover() != nil { // as in readYAML
			line = 0
		}
	}()
	file, err := parser.ParseBytes(d.text, 0)
	if err != nil {
		return 0
	}
	for path != "" {
		if p, err := yaml.PathString("$." + path); err == nil {
			if node, err := p.FilterFile(file); err == nil && node != nil && node.GetToken() != nil {
				return node.GetToken().Position.Line
			}
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 0
}
