import random

from sacrebleu_fast.metrics import CorpusBleu  # conda env "mt-eval" only


class Reporter:
    def __init__(self):
        self.metric = CorpusBleu(lowercase=True)

    def score(self, epoch, model):
        hyp = [random.choice("abcd") for _ in range(8)]
        print("BLEU", epoch, self.metric(hyp, [hyp]).score)
