package latency

import (
	"slices"
	"strings"
	"testing"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models"
)

// Every preset can be read, has a name in the lists, and says how and where it was measured.
func TestPresets(t *testing.T) {
	for _, name := range presets(modulationPreset) {
		m, err := ParseModulation(strings.ToUpper(name))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(ModulationNames(), name) || m.Name() != name {
			t.Errorf("%s: is called %q, and the list is %v", name, m.Name(), ModulationNames())
		}
		for _, word := range []string{"measured: " + name, "trbench calibrate", "commit ", "cores"} {
			if !strings.Contains(m.Label(), word) {
				t.Errorf("%s: the label lacks %q: %s", name, word, m.Label())
			}
		}
		if mean, ok := m.Mean(); !ok || mean < .9 || mean > 3 {
			t.Errorf("%s: mean multiplier %g, %v", name, mean, ok)
		}
	}
	cards := []models.Card{{Name: "gsm-s"}, {Name: "gsm-l"}}
	for _, name := range presets(latencyPreset) {
		s, err := Parse(name, cards, []int{1, 1})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(Names(), name) || s.Name != name || s.Whole() {
			t.Errorf("%s: is called %q, whole steps %v, and the list is %v", name, s.Name, s.Whole(), Names())
		}
		if !strings.HasPrefix(s.Label(), "fitted: measured steps ") || !strings.Contains(s.Label(), "commit ") {
			t.Errorf("%s: label %s", name, s.Label())
		}
		decode := step.Shape{Decodes: 1, DecodeContext: 100, Longest: 100}
		if small, large := s.New(0).StepTime(decode), s.New(1).StepTime(decode); small >= large {
			t.Errorf("%s: the small model takes %v, the large one %v", name, small, large)
		}
		if _, err := Parse(name, cards[:1], []int{1}); err == nil {
			t.Errorf("%s: taken for one model", name)
		}
	}
	if len(presets(modulationPreset)) == 0 || len(presets(latencyPreset)) == 0 {
		t.Error("no preset")
	}
}
