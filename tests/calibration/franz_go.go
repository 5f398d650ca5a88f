// The member of member.py with franz-go: the same options, the same lines.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"
	"time"
	_ "unsafe" // for linkname

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	slice  = 20 * time.Millisecond
	frozen = 300 * time.Millisecond // a slice of work that takes longer was frozen: nothing was done meanwhile
)

// The clock of Python's time.monotonic.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

type options struct {
	Kind, Bootstrap, Group, Strategy, Name, Log string
	Topics                                      []string
	Seed                                        int64
	RecordSeconds                               float64 `json:"record_seconds"`
	RecordCv                                    float64 `json:"record_cv"`
	Settings                                    map[string]int
	Initial, Verbose                            bool
}

type member struct {
	options
	lines  *os.File
	random *rand.Rand
}

func (m *member) write(event string, values ...any) {
	seconds := math.Round(float64(nanotime())/1e5) / 1e4
	line, err := json.Marshal(append([]any{seconds, event}, values...))
	check(err)
	_, err = m.lines.Write(append(line, '\n'))
	check(err)
}

// call returns a callback that writes the partitions.
func (m *member) call(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		numbers := []int32{}
		for _, partitions := range topics {
			numbers = append(numbers, partitions...)
		}
		slices.Sort(numbers)
		m.write(event, numbers)
	}
}

// A logger writes a line when partitions are revoked: an option for that would replace the default one, which commits.
type logger struct {
	*member
	text kgo.Logger
}

func (l logger) Level() kgo.LogLevel { return kgo.LogLevelDebug }

func (l logger) Log(level kgo.LogLevel, message string, pairs ...any) {
	if message == "entering OnPartitionsRevoked" {
		topics := reflect.ValueOf(pairs[1]).Convert(reflect.TypeFor[map[string][]int32]())
		l.call("revoked")(nil, nil, topics.Interface().(map[string][]int32))
	}
	if l.Verbose && level <= kgo.LogLevelInfo {
		l.text.Log(level, message, pairs...)
	}
}

func now() string { return time.Now().Format("2006-01-02 15:04:05,000 ") }

func (m *member) join() (client *kgo.Client, most int) {
	given := []kgo.Opt{
		kgo.SeedBrokers(m.Bootstrap), kgo.ConsumerGroup(m.Group), kgo.ClientID(m.Name),
		kgo.ConsumeTopics(m.Topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(m.call("assigned")), kgo.OnPartitionsLost(m.call("lost")),
		kgo.WithLogger(logger{m, kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, now)}),
	}
	switch m.Strategy {
	case "range":
		given = append(given, kgo.Balancers(kgo.RangeBalancer()))
	case "cooperative-sticky":
		given = append(given, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "range-848+reconcile":
		given = append(given, kgo.Balancers(kgo.RangeBalancer()), kgo.ServerSideBalancer())
	case "uniform-848+reconcile": // which franz-go requests if its balancer is sticky
		given = append(given, kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer())
	default:
		log.Fatalf("franz-go has no strategy %s", m.Strategy)
	}
	for name, value := range m.Settings {
		duration := time.Duration(value) * time.Millisecond
		switch name {
		case "session.timeout.ms":
			given = append(given, kgo.SessionTimeout(duration))
		case "heartbeat.interval.ms":
			given = append(given, kgo.HeartbeatInterval(duration))
		case "auto.commit.interval.ms":
			given = append(given, kgo.AutoCommitInterval(duration))
		case "max.partition.fetch.bytes":
			given = append(given, kgo.FetchMaxPartitionBytes(int32(value)))
		case "max.poll.records":
			most = value
		default:
			log.Fatalf("franz-go has no setting %s", name)
		}
	}
	client, err := kgo.NewClient(given...)
	check(err)
	return client, most
}

// drawn returns how long so many records take: the sum of equal, or of exponentially distributed times.
func (m *member) drawn(records int) (seconds float64) {
	for range records {
		if m.RecordCv == 0 {
			seconds += m.RecordSeconds
		} else {
			seconds += m.random.ExpFloat64() * m.RecordSeconds
		}
	}
	return seconds
}

// work works for this time, in which the process is not frozen.
func work(left time.Duration) {
	for left > 0 {
		began := time.Now()
		time.Sleep(min(left, slice))
		if took := time.Since(began); took < frozen {
			left -= took
		} else {
			left -= slice
		}
	}
}

// runsOf returns consecutive records of a partition together.
func runsOf(records []*kgo.Record) (runs [][3]int64) {
	for _, r := range records {
		last := len(runs) - 1
		if last >= 0 && runs[last][0] == int64(r.Partition) && runs[last][1]+runs[last][2] == r.Offset {
			runs[last][2]++
		} else {
			runs = append(runs, [3]int64{int64(r.Partition), r.Offset, 1})
		}
	}
	return runs
}

func main() {
	m := &member{}
	check(json.Unmarshal([]byte(os.Args[1]), &m.options))
	if m.RecordCv != 0 && m.RecordCv != 1 {
		log.Fatalf("record_cv is %v, expected 0 or 1", m.RecordCv)
	}
	m.random = rand.New(rand.NewSource(m.Seed))
	var err error
	m.lines, err = os.OpenFile(m.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	check(err)
	running, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return
	}
	go func() { // end with the parent
		_, _ = io.Copy(io.Discard, in)
		os.Exit(1)
	}()
	client, most := m.join()
	m.write("started")
	for running.Err() == nil {
		records := client.PollRecords(running, most).Records()
		if len(records) > 0 {
			seconds := m.drawn(len(records))
			m.write("polled", runsOf(records), math.Round(seconds*1e4)/1e4)
			work(time.Duration(seconds * float64(time.Second)))
			m.write("handled")
		}
	}
	m.write("closing")
	client.Close()
	m.write("closed")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
