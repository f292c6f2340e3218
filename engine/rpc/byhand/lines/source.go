package lines

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"slices"
	"strings"
)

// declaration is a function, method, type, constant or variable of a package.
type declaration struct {
	file, name string // a method is Type.Method
	lines      int    // with code on them
	uses       []string
}

// plain is the name as code uses it: a method's without its type.
func (d declaration) plain() string { return d.name[strings.IndexByte(d.name, '.')+1:] }

// source is a package's declarations, by file and place.
type source []declaration

func (s source) in(file string) []declaration {
	var in []declaration
	for _, d := range s {
		if d.file == file {
			in = append(in, d)
		}
	}
	return in
}

func (s source) declared(file, name string) (declaration, bool) {
	for _, d := range s {
		if d.file == file && d.name == name {
			return d, true
		}
	}
	return declaration{}, false
}

func total(list []declaration) int {
	n := 0
	for _, d := range list {
		n += d.lines
	}
	return n
}

// parse finds the declarations of a package.
func parse(files fs.FS) (source, error) {
	texts, err := read(files)
	if err != nil {
		return nil, err
	}
	var s source
	for name, text := range texts {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		code := codeLines(text)
		add := func(name string, from, to ast.Node) {
			d := declaration{file: set.Position(f.Pos()).Filename, name: name, uses: uses(to)}
			for line := set.Position(from.Pos()).Line; line <= set.Position(to.End()).Line; line++ {
				if code[line] {
					d.lines++
				}
			}
			s = append(s, d)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(method(d), d.Type, d)
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					continue
				}
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(spec.Name.Name, spec.Name, spec)
					case *ast.ValueSpec:
						add(spec.Names[0].Name, spec.Names[0], spec)
					}
				}
			}
		}
	}
	slices.SortStableFunc(s, func(a, b declaration) int { return cmp.Compare(a.file, b.file) })
	return s, nil
}

func method(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	return t.(*ast.Ident).Name + "." + d.Name.Name
}

// uses are the names that a declaration mentions. Two things of one name are taken for the same: a count of what is
// needed may be too large by it, never too small.
func uses(n ast.Node) []string {
	var names []string
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names = append(names, id.Name)
		}
		return true
	})
	return names
}

// codeLines are the lines of a Go file with a token on them that is no comment.
func codeLines(text []byte) map[int]bool {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue // the scanner's own
		}
		first := file.Line(pos)
		for i := range 1 + strings.Count(literal, "\n") {
			lines[first+i] = true
		}
	}
}
