package models

import (
	"fmt"
	"slices"
	"strings"
)

// AssumedGPUHourUSD is what one GPU costs an hour on demand, USD: a round number to begin with, which nobody measured or
// published for a claim here. Real prices differ by a factor of three between sellers and contracts.
func AssumedGPUHourUSD(gpu string) (float64, bool) {
	usd, ok := map[string]float64{"a100": 2, "h100": 3, "h200": 4}[gpu]
	return usd, ok
}

// HourUSD is what the GPUs that the models occupy cost an hour. prices has the price of one GPU an hour, USD: one for
// all, or one for the GPUs of each model, which shared GPUs can't have.
func (d Deployment) HourUSD(prices []float64) (float64, error) {
	switch {
	case len(prices) == 1:
		return prices[0] * float64(d.Needed()), nil
	case len(prices) != len(d.TP):
		return 0, fmt.Errorf("%d prices for %d models: want one for all, or one each", len(prices), len(d.TP))
	case d.Shared && slices.Min(prices) != slices.Max(prices):
		return 0, fmt.Errorf("prices %s: the models share their GPUs, which have one price", strings.Trim(fmt.Sprint(prices), "[]"))
	case d.Shared:
		return prices[0] * float64(d.Needed()), nil
	}
	usd := 0.
	for i, tp := range d.TP {
		usd += prices[i] * float64(tp)
	}
	return usd, nil
}

// USDPerMTok is what a million output tokens cost at an hourly price and a throughput in tokens a second.
func USDPerMTok(hourUSD, tokS float64) float64 { return hourUSD / 3600 / tokS * 1e6 }
