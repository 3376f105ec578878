import json
import os
import queue
import threading


class SinkError(Exception):
    """The writer could not keep the samples."""


class Sink:
    def __init__(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.file = open(path, "w")
        self.queue = queue.SimpleQueue()
        self.error = None
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def put(self, sample):
        self.queue.put(json.dumps(sample))

    def loop(self):
        while (line := self.queue.get()) is not None:
            if self.error is None:
                try:
                    self.file.write(line + "\n")
                    self.file.flush()
                except OSError as e:
                    self.error = e

    def close(self):
        self.queue.put(None)
        self.thread.join()
        if self.error is not None:
            raise SinkError("samples were lost") from self.error
        self.file.close()
