package calibrate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/trbench/trbench/models/latency"
)

// Names of the files in a calibration's folder.
const (
	LatencyFile    = "latency.yaml"
	ModulationFile = "modulation.yaml"
	RoutingFile    = "routing.yaml"
	ReportFile     = "calibration.json"
)

// CheckFolder makes the folder and tries to write in it, before there is anything to lose.
func CheckFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return optionsErrorf("folder %s: %w", dir, err)
	}
	f, err := os.CreateTemp(dir, ".trbench-*")
	if err != nil {
		return optionsErrorf("folder %s can't be written: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Save writes what the report has into the folder: latency.yaml, modulation.yaml (and one for each model where there is
// more than one), routing.yaml, calibration.json, and pictures in the formats "svg" and "png". It sets r.Files. Each
// file is written under another name first and renamed, and files that are not its own stay.
func (r *Report) Save(dir string, formats ...string) error {
	files := map[string]func(io.Writer) error{}
	if s := r.Steps; s != nil {
		files[LatencyFile] = func(w io.Writer) error { return latency.Write(w, s.LatencyFile()) }
		files[ModulationFile] = func(w io.Writer) error { return WriteModulation(w, s.ModulationFile()) }
		for _, m := range s.Models {
			if len(s.Models) > 1 {
				files["modulation-"+m.file+".yaml"] = func(w io.Writer) error {
					return WriteModulation(w,
						m.ModulationFile())
				}
			}
		}
	}
	if t := r.Tokens; t != nil {
		files[RoutingFile] = t.WriteRouting
	}
	for _, f := range r.figures() {
		for _, format := range formats {
			switch format {
			case "svg":
				files[f.name+".svg"] = f.svg
			case "png":
				files[f.name+".png"] = f.png
			default:
				return optionsErrorf("picture format %q: want svg or png", format)
			}
		}
	}
	r.Files = []string{ReportFile}
	for name := range files {
		r.Files = append(r.Files, name)
	}
	slices.Sort(r.Files)
	files[ReportFile] = r.JSON
	for _, name := range r.Files {
		if err := replace(filepath.Join(dir, name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// replace writes a file under another name and renames it.
func replace(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".trbench-*")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", path, err), os.Remove(f.Name()))
		}
	}()
	if err := write(f); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Chmod(0o644); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// fileName is a model's name as part of a file's: letters, digits, dots, dashes and underscores of it.
func fileName(model string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)), r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}, model)
	name = strings.Trim(name, ".-")
	if name == "" {
		return "model"
	}
	return name
}
