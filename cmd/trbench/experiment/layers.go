package experiment

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// EnvPrefix starts the environment variables that set keys: TRBENCH_SWITCH_RATE, TRBENCH_RPC_RTT_US.
const EnvPrefix = "TRBENCH_"

// EnvName is the environment variable of a key.
func EnvName(key string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// LoadFile lays a YAML file over c. Keys are written nested or with dots; an error has the file and the line.
func (c *Config) LoadFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return usagef("config: %w", err)
	}
	return c.LoadYAML(path, data)
}

// LoadYAML lays a YAML document over c; name stands for it in errors.
func (c *Config) LoadYAML(name string, data []byte) error {
	file, err := parser.ParseBytes(data, 0)
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		return usagef("%s:%d: %s", name, syntax.Token.Position.Line, syntax.Message)
	}
	if err != nil {
		return usagef("config %s: %w", name, err)
	}
	seen := map[string]int{}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if err := c.mapping(name, "", doc.Body, seen); err != nil {
			return usage(err)
		}
	}
	return nil
}

// mapping sets the keys of a YAML mapping; prefix is the dotted path to it.
func (c *Config) mapping(file, prefix string, node ast.Node, seen map[string]int) error {
	var pairs []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		return fmt.Errorf("%s:%d: found %s, want a mapping of keys to values", file, node.GetToken().Position.Line, node.Type())
	}
	for _, p := range pairs {
		line := p.Key.GetToken().Position.Line
		key := prefix + p.Key.GetToken().Value
		switch p.Value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			if err := c.mapping(file, key+".", p.Value, seen); err != nil {
				return err
			}
			continue
		}
		value, err := scalar(p.Value)
		if err != nil {
			return fmt.Errorf("%s:%d: %s: %w", file, line, key, err)
		}
		plain := strings.ReplaceAll(strings.ToLower(key), "-", "_")
		if before := seen[plain]; before > 0 {
			return fmt.Errorf("%s:%d: %s is set on line %d already", file, line, key, before)
		}
		seen[plain] = line
		if err := c.Set(key, value); err != nil {
			return fmt.Errorf("%s:%d: %w", file, line, err)
		}
	}
	return nil
}

// scalar is a YAML value as the text that Set takes: a list is joined by commas.
func scalar(node ast.Node) (string, error) {
	switch n := node.(type) {
	case *ast.SequenceNode:
		var parts []string
		for _, v := range n.Values {
			s, err := scalar(v)
			if err != nil {
				return "", err
			}
			parts = append(parts, s)
		}
		return strings.Join(parts, ","), nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.NullNode:
		return "", errors.New("the value is missing")
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, nil
	}
	return "", fmt.Errorf("found %s, want a value or a list of values", node.Type())
}

// LoadEnv lays the environment over c: lookup is os.LookupEnv. A variable that starts with EnvPrefix and names no key is
// the caller's to judge: other tools may use the prefix.
func (c *Config) LoadEnv(lookup func(string) (string, bool)) error {
	for _, k := range Keys() {
		name := EnvName(k.Name)
		if v, ok := lookup(name); ok {
			if err := k.set(c, v); err != nil {
				return usagef("environment %s: %w", name, err)
			}
		}
	}
	return nil
}

// SetPair lays one KEY=VALUE over c.
func (c *Config) SetPair(pair string) error {
	key, value, ok := strings.Cut(pair, "=")
	if !ok {
		return usagef("--set %q: want KEY=VALUE", pair)
	}
	return usage(c.Set(strings.TrimSpace(key), strings.TrimSpace(value)))
}
