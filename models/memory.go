package models

import (
	"fmt"
	"strings"
)

// Memory is one memory that models share: a machine's, for models that run on its CPU.
type Memory struct {
	Bytes  int64  // for weights and KV
	Origin string // where that comes from: "90 % of 21.30 GB available"
	Models []MemoryUse
}

// MemoryUse is what one model takes of a memory.
type MemoryUse struct {
	Name            string
	WeightBytes     int64 // as they are held, which may be more than a file's
	KVBytesPerToken int64
}

// MemoryError reports models that do not fit into a memory, with the sum.
type MemoryError struct{ Memory }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s of weights, %s: no room for KV", e.weights(), e.room())
}

// KVTokens is the joint KV budget: the largest token capacity that every model can have at once,
//
//	(Bytes - sum of weights) / (sum of KV bytes a token)
//
// as Deployment.KVTokens has it for a GPU (paper, "Runtime"). Weights that leave no room for a token are a *MemoryError.
func (m Memory) KVTokens() (int, error) {
	left, perToken := m.Bytes, int64(0)
	for _, u := range m.Models {
		left -= u.WeightBytes
		perToken += u.KVBytesPerToken
	}
	if perToken <= 0 || left < perToken {
		return 0, &MemoryError{m}
	}
	return int(left / perToken), nil
}

// Only is the memory with model i alone.
func (m Memory) Only(i int) Memory {
	m.Models = m.Models[i : i+1]
	return m
}

// String is the sum behind KVTokens.
func (m Memory) String() string {
	var kv []string
	for _, u := range m.Models {
		kv = append(kv, fmt.Sprint(u.KVBytesPerToken))
	}
	return fmt.Sprintf("%s; %s of weights; %s bytes of KV a token", m.room(), m.weights(), strings.Join(kv, " + "))
}

func (m Memory) room() string {
	text := bytesText(m.Bytes) + " for weights and KV"
	if m.Origin != "" {
		text += " (" + m.Origin + ")"
	}
	return text
}

// weights is "gsm-s 1.32 MB + gsm-l 10.9 MB = 12.2 MB".
func (m Memory) weights() string {
	var parts []string
	sum := int64(0)
	for _, u := range m.Models {
		parts = append(parts, u.Name+" "+bytesText(u.WeightBytes))
		sum += u.WeightBytes
	}
	text := strings.Join(parts, " + ")
	if len(parts) > 1 {
		text += " = " + bytesText(sum)
	}
	return text
}

func bytesText(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.2f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}
