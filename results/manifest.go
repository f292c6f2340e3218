package results

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// ManifestSchema names the version of run.json that this package writes, and the only one that it reads.
const ManifestSchema = "trbench.run/1"

// Manifest is run.json: all that is needed to run again, and to know what the figures were made with.
type Manifest struct {
	Schema      string           `json:"schema"`
	Run         string           `json:"run"`     // hash of the config, less folder and workers: as in Summary
	Version     string           `json:"version"` // of trbench
	CommandLine []string         `json:"command_line"`
	Config      json.RawMessage  `json:"config"` // every key, resolved
	Seed        uint64           `json:"seed"`
	Clock       string           `json:"clock"`      // "virtual" or "wall"
	StartedAt   *time.Time       `json:"started_at"` // null where unknown
	FinishedAt  *time.Time       `json:"finished_at"`
	Interrupted bool             `json:"interrupted"` // ended early: what was done is in the folder
	Workloads   []WorkloadRecord `json:"workloads"`
	Latency     []string         `json:"latency_sources"` // a line each: which table, measured where, fitted or not
	Warnings    []string         `json:"warnings"`
	Files       []string         `json:"files"` // names in the folder, sorted; Folder fills it in

	Host // its keys stand beside the others
}

// Host is what the run was built from and ran on.
type Host struct {
	Commit   Name   `json:"commit"`   // null in a build outside a repository
	Modified bool   `json:"modified"` // built from a tree with uncommitted changes
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPU      Name   `json:"cpu"`
	Cores    int    `json:"cores"`
	GPU      Name   `json:"gpu"` // null where none was used
}

// Name is a string that is null in JSON when empty.
type Name string

// MarshalJSON writes a string or null.
func (n Name) MarshalJSON() ([]byte, error) {
	if n == "" {
		return []byte("null"), nil
	}
	return appendString(nil, string(n)), nil
}

// WorkloadRecord is a workload as it was run.
type WorkloadRecord struct {
	Name    string   `json:"name"`
	Dataset Name     `json:"dataset"` // the file, or "embedded"
	Count   int      `json:"count"`   // requests chosen
	Skips   []Skip   `json:"skips"`   // entries of the dataset passed over, by reason
	SHA256  string   `json:"sha256"`  // of the chosen requests
	Notes   []string `json:"notes"`
}

// Skip counts the dataset entries passed over for one reason.
type Skip struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// WriteManifest writes m as run.json: indented, a newline at the end. Schema is filled in. A Config that is not JSON is
// an error.
func WriteManifest(w io.Writer, m *Manifest) error {
	full := *m
	full.Schema = ManifestSchema
	if len(full.Config) == 0 {
		full.Config = json.RawMessage("null")
	}
	full.CommandLine = listed(full.CommandLine)
	full.Workloads = listed(full.Workloads)
	for i, w := range full.Workloads {
		w.Skips, w.Notes = listed(w.Skips), listed(w.Notes)
		full.Workloads[i] = w
	}
	full.Latency, full.Warnings, full.Files = listed(full.Latency), listed(full.Warnings), listed(full.Files)
	data, err := json.MarshalIndent(&full, "", "  ")
	if err != nil {
		return fmt.Errorf("run.json: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// listed returns a copy of list that is not nil, so that no list is null in JSON.
func listed[T any](list []T) []T { return append([]T{}, list...) }

// ReadManifest reads a run.json. name stands for the input in errors. Any other schema than ManifestSchema is an error.
func ReadManifest(name string, r io.Reader) (*Manifest, error) {
	var m Manifest
	if err := readDocument(name, r, ManifestSchema, &m); err != nil {
		return nil, err
	}
	return &m, nil
}
