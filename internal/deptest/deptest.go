// Package deptest checks the architecture: which package may import which, and what the deterministic ones may not do.
// The rules are data, with a reason each.
//
// Read rules.go (the rules), then check.go (how the source is held against them). The test runs them on this module.
package deptest
