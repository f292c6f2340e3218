package experiment

import (
	"errors"
	"strings"
	"testing"
)

// TestKeys wants every key to be one name in every spelling, to have help, and a default that is read back as itself.
func TestKeys(t *testing.T) {
	names, variables := map[string]bool{}, map[string]string{}
	for _, k := range Keys() {
		if names[k.Name] {
			t.Errorf("two keys %s", k.Name)
		}
		names[k.Name] = true
		if other := variables[EnvName(k.Name)]; other != "" {
			t.Errorf("%s and %s are both %s in the environment", other, k.Name, EnvName(k.Name))
		}
		variables[EnvName(k.Name)] = k.Name
		if k.Name != strings.ToLower(k.Name) || strings.ContainsAny(k.Name, "- ") {
			t.Errorf("key %q: want lower case, dots and underscores", k.Name)
		}
		if k.Flag && strings.Contains(k.Name, ".") {
			t.Errorf("key %s: a name with a dot is no flag", k.Name)
		}
		if k.Help == "" || k.Kind == "" || k.Group == "" {
			t.Errorf("key %s: help %q, kind %q, group %q: want all three", k.Name, k.Help, k.Kind, k.Group)
		}
		stable(t, k, k.Default)
	}
}

// stable sets a key to a text, and wants what Get gives to be read as the same value.
func stable(t *testing.T, k Key, text string) {
	t.Helper()
	c := Defaults()
	if err := c.Set(k.Name, text); err != nil {
		t.Errorf("%s = %q: %v", k.Name, text, err)
		return
	}
	first := k.Get(c)
	if err := c.Set(k.Name, first); err != nil {
		t.Errorf("%s = %q, which gave %q: not read back: %v", k.Name, text, first, err)
		return
	}
	if second := k.Get(c); second != first {
		t.Errorf("%s = %q gave %q, which gave %q", k.Name, text, first, second)
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ key, text, want string }{
		{"workload", " GSM8K , fixed:20,30,alpaca", "gsm8k,fixed:20,30,alpaca"},
		{"system", "rpc, Large-Only", "rpc:vllm-apc,large-only"},
		{"algorithm", "R2R,citer", "r2r,citer"},
		{"concurrency", "1, 2,64", "1,2,64"},
		{"contention", "auto", "auto"},
		{"contention", "0", "0"},
		{"return_rate", "auto", "auto"},
		{"switch_rate", "1e-1", "0.1"},
		{"seed", "18446744073709551615", "18446744073709551615"},
		{"rpc.rtt_us", "", ""},
		{"rpc.rtt_us", "1.5", "1.5"},
		{"rpc.extend_us", "9700, 20900", "9700,20900"},
		{"deployment.shared", "f", "false"},
		{"arrival", "gamma:8,cv=2", "gamma:8,cv=2"},
	} {
		k, err := FindKey(c.key)
		if err != nil {
			t.Fatal(err)
		}
		cfg := Defaults()
		if err := cfg.Set(c.key, c.text); err != nil {
			t.Errorf("%s = %q: %v", c.key, c.text, err)
			continue
		}
		if got := k.Get(cfg); got != c.want {
			t.Errorf("%s = %q gives %q, want %q", c.key, c.text, got, c.want)
		}
		stable(t, k, c.text)
	}
}

// FuzzSet sets any key to any text: what is taken must be read back as itself, what is not must be an error that names
// the key.
func FuzzSet(f *testing.F) {
	for _, k := range Keys() {
		f.Add(k.Name, k.Default)
		f.Add(k.Name, "0")
		f.Add(k.Name, "-1,NaN")
		f.Add(k.Name, "true")
	}
	f.Add("arrival", "ramp:1..8,60s")
	f.Add("slo", "ttft=1ms,tpot=3s")
	f.Add("workload", "fixed:1,2,fixed:3,4")
	f.Fuzz(func(t *testing.T, name, text string) {
		k, err := FindKey(name)
		if err != nil {
			return
		}
		if err := Defaults().Set(name, text); err != nil {
			if !strings.HasPrefix(err.Error(), k.Name+": ") {
				t.Errorf("%s = %q: error %q does not begin with the key", name, text, err)
			}
			return
		}
		stable(t, k, text)
	})
}

func TestCode(t *testing.T) {
	if got := Code(nil); got != ExitOK {
		t.Errorf("code of nil is %d, want %d", got, ExitOK)
	}
	if got := Code(errors.New("x")); got != ExitInternal {
		t.Errorf("code of a plain error is %d, want %d", got, ExitInternal)
	}
	if got := Code(errors.Join(errors.New("x"), &Error{ExitData, errors.New("y")})); got != ExitData {
		t.Errorf("code of a joined error is %d, want %d", got, ExitData)
	}
}
