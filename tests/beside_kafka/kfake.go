// A broker of kfake with a topic, until stdin is closed.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.SeedTopics(6, os.Args[1]), kfake.GroupMinSessionTimeout(time.Second),
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	_, _ = io.Copy(io.Discard, os.Stdin)
}
