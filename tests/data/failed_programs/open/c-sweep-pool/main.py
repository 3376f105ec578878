if __name__ == "__main__":  # keep this file light: the pool's workers import it
    from sweep import main

    main()
