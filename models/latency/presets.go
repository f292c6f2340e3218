package latency

import (
	"bytes"
	"embed"
	"slices"
	"strings"
	"sync"
)

// Presets are files that trbench calibrate wrote from step logs of its own engine: laws (NAME.latency.yaml) and
// modulations (NAME.modulation.yaml). Each says in its source which run, machine and commit it comes from.
//
//go:embed presets/*.yaml
var presetFiles embed.FS

const (
	latencyPreset    = ".latency.yaml"
	modulationPreset = ".modulation.yaml"
)

// presets are the names of the presets of a kind.
func presets(kind string) []string {
	entries, err := presetFiles.ReadDir("presets")
	if err != nil {
		panic(err) // the folder is in the binary
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), kind); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// preset opens the preset of a name; nil where there is none.
func preset(name, kind string) *bytes.Reader {
	if !slices.Contains(presets(kind), name) {
		return nil
	}
	text, err := presetFiles.ReadFile("presets/" + name + kind)
	if err != nil {
		panic(err) // it is in the binary
	}
	return bytes.NewReader(text)
}

// presetModulation is the modulation of a preset; nil where there is none of the name.
func presetModulation(name string) *Modulation {
	for _, p := range modulationPresets() {
		if p.name == name {
			return p
		}
	}
	return nil
}

var modulationPresets = sync.OnceValue(func() []*Modulation {
	var all []*Modulation
	for _, name := range presets(modulationPreset) {
		m, err := ReadModulation(name, preset(name, modulationPreset))
		if err != nil {
			panic(err)
		}
		m.label = strings.Replace(m.label, "file ", "", 1)
		m.name = name
		all = append(all, m)
	}
	return all
})
