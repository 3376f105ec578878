import logging

log = logging.getLogger("callbacks")


class History:
    def __init__(self, every):
        self.every, self.losses = every, []

    def on_step(self, step, loss, accelerator):
        self.losses.append(loss)
        if step % self.every == 0 and accelerator.is_main_process:
            log.info("step %d loss %.4f", step, loss)
        return True


class EarlyStopping:
    """Stop when the loss stayed below floor for patience steps."""

    def __init__(self, patience, floor):
        self.patience, self.floor, self.good = patience, floor, 0

    def on_step(self, step, loss, accelerator):
        self.good = self.good + 1 if loss < self.floor else 0
        if self.good >= self.patience:
            log.info("early stopping at step %d, process %d, loss %.4f", step, accelerator.process_index, loss)
            return False
        return True
