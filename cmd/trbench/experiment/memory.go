package experiment

import (
	"fmt"

	"github.com/trbench/trbench/models"
)

// localMemory is the memory that loaded models share: as much as asked for, or a share of what the machine had available
// before they were loaded. nil where neither is known: KV is then unlimited unless kv_tokens bounds it.
func (p *Plan) localMemory() *models.Memory {
	c := p.Config
	bytes, origin := int64(c.MemoryBytes), "deployment.memory_bytes"
	if bytes == 0 {
		if p.local.available == 0 {
			return nil
		}
		bytes = int64(c.MemoryShare * float64(p.local.available))
		origin = fmt.Sprintf("memory_share %g of %.2f GB available", c.MemoryShare, float64(p.local.available)/1e9)
	}
	m := p.local.memory(bytes, origin)
	return &m
}

// localKV is the joint KV budget of loaded models, tokens; 0 is unlimited.
func (p *Plan) localKV() (int, error) {
	if p.Memory = p.localMemory(); p.Memory == nil {
		return p.Config.KVTokens, nil
	}
	tokens, err := p.Memory.KVTokens()
	if err != nil {
		return 0, fmt.Errorf("deployment: %w", err)
	}
	if p.Config.KVTokens > 0 {
		return p.Config.KVTokens, nil
	}
	return tokens, nil
}
