package results

import (
	"os"
	"path/filepath"
)

// Load reads the manifest and the summary of a result folder.
func Load(dir string) (*Manifest, *Summary, error) {
	m, err := readManifestFile(dir)
	if err != nil {
		return nil, nil, err
	}
	s, err := LoadSummary(dir)
	return m, s, err
}

// LoadSummary reads the summary at path: a summary.json, or a folder that has one.
func LoadSummary(path string) (*Summary, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, SummaryFile)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadSummary(path, file)
}
