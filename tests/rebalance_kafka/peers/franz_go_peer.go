// A peer with franz-go. It reads and drops records: commands are assignment and close.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type options struct {
	Bootstrap, Group, Strategy string
	Topics                     []string
	ClientID                   string `json:"client_id"`
	SessionTimeoutMs           int    `json:"session_timeout_ms"`
	HeartbeatIntervalMs        int    `json:"heartbeat_interval_ms"`
}

type owned struct {
	sync.Mutex
	numbers map[string]map[int32]bool
}

// changes returns a callback that notes partitions as owned or not.
func (o *owned) changes(owns bool) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		o.Lock()
		defer o.Unlock()
		for topic, numbers := range topics {
			for _, number := range numbers {
				if o.numbers[topic] == nil {
					o.numbers[topic] = map[int32]bool{}
				}
				o.numbers[topic][number] = owns
			}
		}
	}
}

func (o *owned) listed() [][2]any {
	o.Lock()
	defer o.Unlock()
	listed := [][2]any{}
	for topic, numbers := range o.numbers {
		for number, owns := range numbers {
			if owns {
				listed = append(listed, [2]any{topic, number})
			}
		}
	}
	return listed
}

// strategies are lists of options, because the consumer protocol needs two.
var strategies = map[string][]kgo.Opt{
	"range":                 {kgo.Balancers(kgo.RangeBalancer())},
	"cooperative-sticky":    {kgo.Balancers(kgo.CooperativeStickyBalancer())},
	"uniform-848+reconcile": {kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer()},
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var given options
	check(in.Decode(&given))
	strategy, found := strategies[given.Strategy]
	if !found {
		log.Fatalf("franz-go has no strategy %s", given.Strategy)
	}
	mine := &owned{numbers: map[string]map[int32]bool{}}
	client, err := kgo.NewClient(append(strategy,
		kgo.SeedBrokers(given.Bootstrap), kgo.ConsumerGroup(given.Group), kgo.ClientID(given.ClientID),
		kgo.ConsumeTopics(given.Topics...), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(time.Duration(given.SessionTimeoutMs)*time.Millisecond),
		kgo.HeartbeatInterval(time.Duration(given.HeartbeatIntervalMs)*time.Millisecond),
		kgo.OnPartitionsAssigned(mine.changes(true)), kgo.OnPartitionsRevoked(mine.changes(false)),
		kgo.OnPartitionsLost(mine.changes(false)),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)),
	)...)
	check(err)
	check(out.Encode(map[string]any{"id": 0, "ready": true}))
	go func() {
		for !client.PollFetches(context.Background()).IsClientClosed() {
		}
	}()
	for {
		var command struct {
			ID int
			Do string
		}
		check(in.Decode(&command))
		switch answer := map[string]any{"id": command.ID}; command.Do {
		case "assignment":
			answer["member_id"], answer["generation"] = client.GroupMetadata()
			answer["assignment"] = mine.listed()
			check(out.Encode(answer))
		case "close":
			client.Close()
			check(out.Encode(answer))
			return
		default:
			answer["error"] = "there is no command " + command.Do
			check(out.Encode(answer))
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
