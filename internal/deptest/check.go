package deptest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Check holds the Go source in tree, the root of a module, against the rules. Each breach is one line with its place
// and the reason of the rule. Test files and testdata are free: a test may compare what must not know each other. Files
// of every platform and build tag count.
func Check(module string, tree fs.FS) ([]string, error) {
	pkgs, err := read(module, tree)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(pkgs)) {
		p := pkgs[name]
		found = append(found, imports(p)...)
		found = append(found, reaches(pkgs, p)...)
		found = append(found, contains(p)...)
	}
	return found, nil
}

// source is what the rules look at in a package.
type source struct {
	name  string // path below the module's root
	own   []use  // imports of this module, by the same kind of path
	other []use  // other imports
	times []use  // names of package time
	goes  []use
}

// use is something in a file: its name, and where.
type use struct{ name, at string }

// read parses every package of a module.
func read(module string, tree fs.FS) (map[string]*source, error) {
	pkgs := map[string]*source{}
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name != "." && foreign(tree, name, e.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || hidden(e.Name()) {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if pkgs[dir] == nil {
			pkgs[dir] = &source{name: dir}
		}
		return pkgs[dir].add(module, files, file)
	})
	return pkgs, err
}

// foreign says that a folder is not the module's: data of tests, hidden, or another module.
func foreign(tree fs.FS, name, base string) bool {
	if base == "testdata" || base == "vendor" || hidden(base) {
		return true
	}
	_, err := fs.Stat(tree, path.Join(name, "go.mod"))
	return err == nil
}

// hidden says that the go command passes over a name.
func hidden(name string) bool { return name[0] == '.' || name[0] == '_' }

// add takes what matters of a file.
func (p *source) add(module string, files *token.FileSet, file *ast.File) error {
	at := func(n ast.Node) string {
		pos := files.Position(n.Pos())
		return fmt.Sprintf("%s:%d", pos.Filename, pos.Line)
	}
	clock := "" // what package time is called in this file
	for _, i := range file.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", at(i), err)
		}
		if imported == module {
			imported = module + "/."
		}
		if own, ok := strings.CutPrefix(imported, module+"/"); ok {
			p.own = append(p.own, use{own, at(i)})
			continue
		}
		p.other = append(p.other, use{imported, at(i)})
		if imported != "time" {
			continue
		}
		clock = "time"
		if i.Name != nil {
			clock = i.Name.Name
		}
		if clock == "." { // its names can't be told from the package's own
			p.times = append(p.times, use{"*", at(i)})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			p.goes = append(p.goes, use{"go", at(n)})
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == clock {
				p.times = append(p.times, use{n.Sel.Name, at(n)})
			}
		}
		return true
	})
	return nil
}

// imports are the breaches of a package's row.
func imports(p *source) []string {
	r := rowOf(p.name)
	if r == nil {
		return []string{fmt.Sprintf("%s: no rule for this package: add a row to rows in internal/deptest/rules.go, with "+
			"what it may import and why", p.name)}
	}
	may := r.may
	if may == "" {
		may = "nothing of this module"
	}
	var found []string
	for _, i := range p.own {
		if !fits(r.may, i.name) {
			found = append(found, fmt.Sprintf("%s: %s imports %s: %s (its row in internal/deptest/rules.go allows %s)",
				i.at, p.name, i.name, r.why, may))
		}
	}
	return found
}

// rowOf is the most precise row for a package; nil if there is none.
func rowOf(pkg string) *row {
	var best *row
	for _, r := range rows() {
		if fits(r.pkg, pkg) && (best == nil || precision(r.pkg) > precision(best.pkg)) {
			best = &r
		}
	}
	return best
}

// precision orders patterns: longer ones first, and a package before its folder.
func precision(pattern string) int {
	folder, all := strings.CutSuffix(pattern, "/...")
	if all {
		return 2 * len(folder)
	}
	return 2*len(folder) + 1
}

// fits says that one of the patterns stands for the package.
func fits(patterns, pkg string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(pattern string) bool {
		folder, all := strings.CutSuffix(pattern, "/...")
		return pkg == folder || all && strings.HasPrefix(pkg, folder+"/")
	})
}

// reaches are the packages that p must never import, and does over others.
func reaches(pkgs map[string]*source, p *source) []string {
	var found []string
	for _, n := range nevers() {
		if !fits(n.from, p.name) {
			continue
		}
		if chain := chainTo(pkgs, []string{p.name}, n.to, map[string]bool{}); chain != nil {
			found = append(found, fmt.Sprintf("%s: never: %s", strings.Join(chain, " -> "), n.why))
		}
	}
	return found
}

// chainTo is the first chain of imports that goes on from one and ends in a package that fits; nil if there is none.
func chainTo(pkgs map[string]*source, chain []string, to string, seen map[string]bool) []string {
	p := pkgs[chain[len(chain)-1]]
	if p == nil {
		return nil
	}
	for _, i := range p.own {
		if seen[i.name] {
			continue
		}
		seen[i.name] = true
		next := append(slices.Clone(chain), i.name)
		if fits(to, i.name) {
			return next
		}
		if full := chainTo(pkgs, next, to, seen); full != nil {
			return full
		}
	}
	return nil
}

// contains are the breaches of bans.
func contains(p *source) []string {
	var found []string
	for _, b := range bans() {
		if !fits(b.pkgs, p.name) {
			continue
		}
		for _, i := range p.other {
			if fits(b.imports, i.name) {
				found = append(found, fmt.Sprintf("%s: %s imports %s: %s", i.at, p.name, i.name, b.why))
			}
		}
		for _, u := range p.times {
			if slices.Contains(strings.Fields(b.time), u.name) || b.time != "" && u.name == "*" {
				found = append(found, fmt.Sprintf("%s: %s uses time.%s: %s", u.at, p.name, u.name, b.why))
			}
		}
		if b.goes {
			for _, g := range p.goes {
				found = append(found, fmt.Sprintf("%s: %s starts a goroutine: %s", g.at, p.name, b.why))
			}
		}
	}
	return found
}
