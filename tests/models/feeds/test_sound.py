"""Feeds of models of speech: enough samples, tones, sampling rates and lengths that fit."""

from __future__ import annotations

import numpy as np

from epcheck.generators.array import Array
from epcheck.models.feeds import dims, feeds
from tests.models.written_models import model


def made(graph: str, seed: int = 0, **sizes: int) -> dict[str, Array]:
    return {name: np.asarray(value) for name, value in feeds.generate(model(graph), seed, sizes).items()}


def test_sound_is_a_second_of_tones_and_noise() -> None:
    (waves,) = made("g (float[batch,N] waveforms) => (float[batch,N] y) { y = Relu(waveforms) }").values()
    assert waves.shape == (1, 16_000)
    assert 0.5 < np.abs(waves).max() < 1
    power = np.abs(np.fft.rfft(waves[0])) ** 2
    assert np.sort(power)[-60:].sum() > 0.95 * power.sum()  # three tones, not noise


def test_a_model_with_a_state_gets_a_frame() -> None:
    found = made("g (float[batch,sequence] input, int64 sr, float[2,batch,128] state) => (float[batch,sequence] y) {"
                 " y = Relu(input) }")  # fmt: skip
    assert found["input"].shape == (1, 512)
    assert found["sr"] == 16_000


def test_sound_is_what_a_convolution_of_one_channel_reads() -> None:
    graph = """g (float[b,n] x) => (float[b,4,m] y)
        <int64[1] one = {{1}}, float[4,{channels},{kernel}] w = {{{zeros}}}> {{
        wide = Unsqueeze(x, one) y = Conv(wide, w)
    }}"""
    long = graph.format(channels=1, kernel=16, zeros=",".join(["0"] * 64))
    short = graph.format(channels=1, kernel=3, zeros=",".join(["0"] * 12))
    assert made(long)["x"].shape == (1, 16_000)
    assert made(short)["x"].shape == (1, 8)


def test_spectra_and_scores_are_no_sound() -> None:
    graph = "g (float[B,80,T] audio_features, float[B,T] speech_mask) => (float[B,80,T] y) { y = Relu(audio_features) }"
    assert made(graph)["audio_features"].shape == (1, 80, 8)


def test_a_sampling_rate_is_the_highest_that_the_graph_compares_it_with() -> None:
    graph = """g (float[1,N] input, int64 sr) => (bool y) <int64 low = {8000}, int64 high = {24000}> {
        a = Equal(sr, low) b = Equal(high, sr) y = Or(a, b)
    }"""
    assert {int(made(graph, seed)["sr"]) for seed in range(9)} == {24_000}


def test_a_single_number_is_one_of_those_that_it_is_compared_with() -> None:
    graph = """g (int64[1] mode, float level) => (bool[1] y) <int64[1] one = {3}, float half = {0.5}> {
        c = Constant <value = int64[1] {7}> () a = Equal(mode, one) b = Equal(mode, c) d = Equal(level, half)
        e = Or(a, b) y = Or(e, d)
    }"""
    assert {int(made(graph, seed)["mode"][0]) for seed in range(20)} == {3, 7}
    assert made(graph)["level"] == 0.5


def test_token_ids_that_are_compared_with_one_of_them_stay_ids() -> None:
    graph = """g (int64[1,300] ids) => (float[1,300] y, bool[1,300] p) <float[4] t = {0,1,2,3}, int64 pad = {1}> {
        y = Gather(t, ids) p = Equal(ids, pad)
    }"""
    assert set(np.unique(made(graph)["ids"])) == {0, 1, 2, 3}


def test_lengths_are_those_of_the_sound() -> None:
    graph = "g (float[batch,N] waveforms, int64[batch] waveforms_lens) => (float[batch,N] y) { y = Relu(waveforms) }"
    lengths = made(graph, batch=50)["waveforms_lens"]
    assert lengths[0] == lengths.max() == 16_000
    assert 8_000 <= lengths.min() < 10_000


def test_lengths_are_those_of_the_input_with_their_name() -> None:
    graph = """g (float[B,80,T] audio_signal, int64[B] length, float[B,F,5] feats, int64[B] feats_lengths)
        => (float[B,80,T] y) { y = Relu(audio_signal) }"""
    assert (
        6 <= made(graph, B=50, F=11, T=30)["feats_lengths"].min() < made(graph, B=50, F=11)["feats_lengths"].max() == 11
    )


def test_ids_in_a_floating_point_input_are_whole() -> None:
    ids = made("g (float[1,300] ids) => (float[1,300] y) <float[5] t = {0,1,2,3,4}> {"
               " whole = Cast<to = 7>(ids) y = Gather(t, whole) }")["ids"]  # fmt: skip
    assert ids.dtype == np.float32
    assert set(np.unique(ids)) == {0, 1, 2, 3, 4}


def test_a_mask_of_a_single_row_is_never_all_ones() -> None:
    graph = "g (int64[1,9] attention_mask) => (float[1,9] y) { y = Cast<to = 1>(attention_mask) }"
    for seed in range(20):
        mask = made(graph, seed)["attention_mask"]
        assert mask[0, 0] == 1
        assert mask[0, -1] == 0


def test_dimensions_of_a_batch_are_the_first_that_count_nothing_else() -> None:
    graph = """g (float[N,3,H,W] x, int64[seq_len,4] ids, float[batch_size,2] c, float[M] d) => (float[N,3,H,W] y) {
        y = Relu(x)
    }"""
    assert dims.of_batch(model(graph)) == ("N", "batch_size")
    sound = "g (float[batch,N] waveforms) => (float[batch,N] y) { y = Relu(waveforms) }"
    assert dims.of_batch(model(sound)) == ("batch",)


def test_the_batch_of_a_state_is_its_second_axis() -> None:
    built = model("g (float[?,?] input, float[2,?,128] state, int64 sr) => (float[?,?] y) { y = Relu(input) }")
    assert dims.of_inputs(built) == {"input[0]": 1, "input[1]": 512, "state[1]": 1}
    assert dims.of_batch(built) == ("input[0]", "state[1]")
