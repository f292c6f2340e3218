package experiment

import (
	"fmt"
	"strings"

	"github.com/trbench/trbench/models"
	"github.com/trbench/trbench/results"
)

// Price is what a GPU costs: nothing known, a default that is assumed, or as given.
type Price struct {
	Auto bool
	USD  []float64 // an hour of one GPU: for all, or for the GPUs of each model
}

func (p Price) String() string {
	if p.Auto {
		return auto
	}
	return joinFloats(p.USD)
}

// prices resolves what GPUs cost, and refuses what a deployment can't have.
func (p *Plan) prices() error {
	c := p.Config
	switch {
	case !c.Price.Auto && c.Price.USD == nil:
		return nil
	case p.Deployment == nil && c.GPUs == 0:
		return usagef("price.gpu_hour_usd: step times are whole steps, so that the number of GPUs is not known: give deployment.gpus")
	case c.Price.Auto && p.Deployment == nil:
		return usagef("price.gpu_hour_usd auto: no type of GPU is known: give a price")
	case c.Price.Auto:
		usd, ok := models.AssumedGPUHourUSD(p.Deployment.GPU.Name)
		if !ok {
			return usagef("price.gpu_hour_usd auto: no price is assumed for %s: give one", p.Deployment.GPU.Name)
		}
		p.price = []float64{usd}
	default:
		p.price = c.Price.USD
	}
	if p.Deployment == nil && len(p.price) > 1 {
		return usagef("price.gpu_hour_usd: %d prices: no deployment says which GPUs are whose: give one", len(p.price))
	}
	if p.Deployment != nil {
		if _, err := p.Deployment.HourUSD(p.price); err != nil {
			return usagef("price.gpu_hour_usd: %w", err)
		}
	}
	p.warn("%s", p.priceSource())
	return nil
}

// priceSource says what a GPU costs, and who says so.
func (p *Plan) priceSource() string {
	var usd []string
	for _, x := range p.price {
		usd = append(usd, fmt.Sprintf("$%.2f", x))
	}
	text := "cost_usd_per_mtok: " + strings.Join(usd, ", ") + " an hour of one GPU"
	if p.Config.Price.Auto {
		return text + " of type " + p.Deployment.GPU.Name + ", assumed: price.gpu_hour_usd sets yours"
	}
	return text + ", as given; a system pays for the GPUs that its models occupy"
}

// bill gives a point the price of its tokens.
func (p *Plan) bill(pt *Point, point *results.Point) {
	tokS, ok := point.OutputTokS.Get()
	if p.price == nil || !ok {
		return
	}
	hour := p.price[0] * float64(p.Config.GPUs)
	if p.Deployment != nil {
		d, prices := *p.Deployment, p.price
		if !pt.System.Routed() {
			i := pt.System.Only
			if i < 0 {
				i = len(d.TP) - 1
			}
			if d = d.Only(i); len(prices) > 1 {
				prices = prices[i : i+1]
			}
		}
		hour, _ = d.HourUSD(prices) // prices has asked before
	}
	point.CostPerMTok = results.F(models.USDPerMTok(hour, tokS))
}
