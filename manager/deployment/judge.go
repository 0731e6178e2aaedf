package deployment

import (
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/deployment/rollout"
)

// Bounds of the judgement of a canary.
const (
	// enough is the number of requests in a minute below which a revision is not judged.
	enough = 20
	// moreErrors is how much larger the share of failed requests may be than that of the old revision.
	moreErrors = 0.05
	// slower is how many times later the first byte may come, for the slowest 5 % of the requests. The histogram has
	// an error of 30 %.
	slower = 2
)

// judge compares a new revision with the old one. Without requests to the old one, only errors count.
func judge(target, current load.Window) rollout.Verdict {
	if target.Requests < enough {
		return rollout.Unknown
	}
	if load.Share(target.Errors, target.Requests) > load.Share(current.Errors, current.Requests)+moreErrors {
		return rollout.Bad
	}
	now, known := target.FirstByte.Quantile(0.95)
	before, comparable := current.FirstByte.Quantile(0.95)
	if known && comparable && current.Requests >= enough && now > slower*before {
		return rollout.Bad
	}
	return rollout.Good
}
